// A backend descriptor of cuDNN's graph API: owned, with typed attributes. A descriptor also owns the objects to which
// it refers.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/backend/cuda/runtime/handle.h"

namespace trainctl::cuda {

// The type tag that cuDNN expects with an attribute's values.
constexpr cudnnBackendAttributeType_t attribute_type(std::int64_t) { return CUDNN_TYPE_INT64; }
constexpr cudnnBackendAttributeType_t attribute_type(float) { return CUDNN_TYPE_FLOAT; }
constexpr cudnnBackendAttributeType_t attribute_type(double) { return CUDNN_TYPE_DOUBLE; }
constexpr cudnnBackendAttributeType_t attribute_type(bool) { return CUDNN_TYPE_BOOLEAN; }
constexpr cudnnBackendAttributeType_t attribute_type(char) { return CUDNN_TYPE_CHAR; }
constexpr cudnnBackendAttributeType_t attribute_type(cudnnHandle_t) { return CUDNN_TYPE_HANDLE; }
constexpr cudnnBackendAttributeType_t attribute_type(cudnnDataType_t) { return CUDNN_TYPE_DATA_TYPE; }
constexpr cudnnBackendAttributeType_t attribute_type(cudnnConvolutionMode_t) { return CUDNN_TYPE_CONVOLUTION_MODE; }
constexpr cudnnBackendAttributeType_t attribute_type(cudnnPointwiseMode_t) { return CUDNN_TYPE_POINTWISE_MODE; }
constexpr cudnnBackendAttributeType_t attribute_type(cudnnGenStatsMode_t) { return CUDNN_TYPE_GENSTATS_MODE; }
constexpr cudnnBackendAttributeType_t attribute_type(cudnnReduceTensorOp_t) {
  return CUDNN_TYPE_REDUCTION_OPERATOR_TYPE;
}
constexpr cudnnBackendAttributeType_t attribute_type(cudnnBackendHeurMode_t) { return CUDNN_TYPE_HEUR_MODE; }
constexpr cudnnBackendAttributeType_t attribute_type(cudnnBackendKnobType_t) { return CUDNN_TYPE_KNOB_TYPE; }
constexpr cudnnBackendAttributeType_t attribute_type(cudnnBackendNumericalNote_t) { return CUDNN_TYPE_NUMERICAL_NOTE; }
constexpr cudnnBackendAttributeType_t attribute_type(cudnnBackendBehaviorNote_t) { return CUDNN_TYPE_BEHAVIOR_NOTE; }

class Descriptor {
 public:
  explicit Descriptor(cudnnBackendDescriptorType_t type);

  cudnnBackendDescriptor_t get() const { return descriptor_.get(); }

  template <class T>
  void set(cudnnBackendAttributeName_t name, std::span<const T> values) {
    set(name, attribute_type(T{}), static_cast<std::int64_t>(values.size()), values.data());
  }
  template <class T>
  void set(cudnnBackendAttributeName_t name, T value) {
    set(name, std::span<const T>(&value, 1));
  }
  void set(cudnnBackendAttributeName_t name, const Descriptor& child) { set(name, child.get()); }
  void set(cudnnBackendAttributeName_t name, cudnnBackendDescriptor_t child) {
    set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &child);
  }
  void set(cudnnBackendAttributeName_t name, std::span<const Descriptor> children);
  // Sets addresses of memory.
  void set_addresses(cudnnBackendAttributeName_t name, std::span<void* const> addresses) {
    set(name, CUDNN_TYPE_VOID_PTR, static_cast<std::int64_t>(addresses.size()), addresses.data());
  }

  // Ends the description. If cuDNN does not support it, finalize() throws Error{internal} and can_finalize() returns
  // false.
  void finalize();
  bool can_finalize();

  // The values of the attribute, at most `max_count` of them.
  template <class T>
  std::vector<T> values(cudnnBackendAttributeName_t name, std::int64_t max_count) const {
    std::vector<T> values(static_cast<std::size_t>(max_count));
    values.resize(static_cast<std::size_t>(get(name, attribute_type(T{}), max_count, values.data())));
    return values;
  }
  template <class T>
  T value(cudnnBackendAttributeName_t name) const {
    T value{};
    get(name, attribute_type(T{}), 1, &value);
    return value;
  }
  // The attribute's value; empty if cuDNN does not provide the attribute.
  template <class T>
  std::optional<T> find(cudnnBackendAttributeName_t name) const {
    T value{};
    const auto status = cudnnBackendGetAttribute(get(), name, attribute_type(T{}), 1, nullptr, &value);
    return status == CUDNN_STATUS_SUCCESS ? std::optional(value) : std::nullopt;
  }
  // The number of values of the attribute.
  std::int64_t count(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type) const;
  // Descriptors that cuDNN fills in, at most `max_count`.
  std::vector<Descriptor> children(cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t type,
                                   std::int64_t max_count) const;

 private:
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count, const void* values);
  std::int64_t get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t max_count,
                   void* values) const;

  OwnedDescriptor descriptor_;
};

}  // namespace trainctl::cuda
