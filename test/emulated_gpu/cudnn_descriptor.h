// The emulated cuDNN's backend descriptors: they have attributes by name, which are checked when they are finalized.
#pragma once

#include <cudnn.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace emulated::cudnn {

// The index of the engine that computes wrong values.
inline constexpr int wrong_engine = 3;

// Thrown by a call that is refused; `why` becomes the text of cudnnGetLastErrorString().
struct Refusal {
  cudnnStatus_t status;
  std::string why;
};

struct Descriptor {
  struct Attribute {
    cudnnBackendAttributeType_t type;
    std::int64_t count;
    std::vector<std::byte> bytes;
  };

  cudnnBackendDescriptorType_t type{};
  bool finalized = false;
  std::map<cudnnBackendAttributeName_t, Attribute> attributes;
  std::map<cudnnBackendAttributeName_t, std::vector<std::shared_ptr<const Descriptor>>> children;

  bool has(cudnnBackendAttributeName_t name) const { return attributes.contains(name) || children.contains(name); }

  // Returns all values of an attribute. Throws Refusal if it is not set or its values have another size.
  template <class T>
  std::vector<T> values(cudnnBackendAttributeName_t name) const {
    const auto found = attributes.find(name);
    const bool fits = found != attributes.end() &&
                      found->second.bytes.size() == static_cast<std::size_t>(found->second.count) * sizeof(T);
    if (!fits)
      throw Refusal{CUDNN_STATUS_BAD_PARAM,
                    "attribute " + std::to_string(name) + " is not set, or has values of another size"};
    std::vector<T> all(static_cast<std::size_t>(found->second.count));
    if (!all.empty()) std::memcpy(all.data(), found->second.bytes.data(), found->second.bytes.size());
    return all;
  }
  template <class T>
  T value(cudnnBackendAttributeName_t name) const {
    const std::vector<T> all = values<T>(name);
    if (all.size() != 1)
      throw Refusal{CUDNN_STATUS_BAD_PARAM, "attribute " + std::to_string(name) + " must have one value"};
    return all[0];
  }
  template <class T>
  T value_or(cudnnBackendAttributeName_t name, T otherwise) const {
    return attributes.contains(name) ? value<T>(name) : otherwise;
  }
  const Descriptor& child(cudnnBackendAttributeName_t name) const {
    const auto found = children.find(name);
    if (found == children.end() || found->second.size() != 1) {
      throw Refusal{CUDNN_STATUS_BAD_PARAM, "attribute " + std::to_string(name) + " must be one descriptor"};
    }
    return *found->second[0];
  }
  template <class T>
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t attribute_type, const std::vector<T>& all) {
    const auto* bytes = reinterpret_cast<const std::byte*>(all.data());
    attributes[name] = {attribute_type, static_cast<std::int64_t>(all.size()), {bytes, bytes + all.size() * sizeof(T)}};
  }
};

// Returns the documented type of an attribute (FLOAT means FLOAT or DOUBLE).
cudnnBackendAttributeType_t type_of(cudnnBackendAttributeName_t name);
std::size_t bytes_of(cudnnBackendAttributeType_t type);

// Throws Refusal if the descriptor is not allowed or not supported.
void check(const Descriptor& descriptor);

// Returns the engine configurations that the heuristics offer for a graph.
std::vector<std::shared_ptr<Descriptor>> offered(const Descriptor& heuristics);
// Adds the library's notes about an engine to its descriptor.
void describe_engine(Descriptor& engine);
std::int64_t workspace_bytes(const Descriptor& configuration);

}  // namespace emulated::cudnn
