// Backend descriptors of the emulated cuDNN: attributes by name, checked when a descriptor is finalized.
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

// The engine that gives other values than the rest.
inline constexpr int wrong_engine = 3;

// What a finalize, an attribute or an execution was refused for; the message is cudnnGetLastErrorString()'s.
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

  // All values of an attribute. Throws Refusal where it is not set or its values have another size.
  template <class T>
  std::vector<T> values(cudnnBackendAttributeName_t name) const {
    const auto found = attributes.find(name);
    const bool fits = found != attributes.end() &&
                      found->second.bytes.size() == static_cast<std::size_t>(found->second.count) * sizeof(T);
    if (!fits) throw Refusal{CUDNN_STATUS_BAD_PARAM, "attribute " + std::to_string(name) + " is not set as it must be"};
    std::vector<T> all(static_cast<std::size_t>(found->second.count));
    if (!all.empty()) std::memcpy(all.data(), found->second.bytes.data(), found->second.bytes.size());
    return all;
  }
  template <class T>
  T value(cudnnBackendAttributeName_t name) const {
    const std::vector<T> all = values<T>(name);
    if (all.size() != 1) throw Refusal{CUDNN_STATUS_BAD_PARAM, "attribute " + std::to_string(name) + " has one value"};
    return all[0];
  }
  template <class T>
  T value_or(cudnnBackendAttributeName_t name, T otherwise) const {
    return attributes.contains(name) ? value<T>(name) : otherwise;
  }
  const Descriptor& child(cudnnBackendAttributeName_t name) const {
    const auto found = children.find(name);
    if (found == children.end() || found->second.size() != 1) {
      throw Refusal{CUDNN_STATUS_BAD_PARAM, "attribute " + std::to_string(name) + " is one descriptor"};
    }
    return *found->second[0];
  }
  template <class T>
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t attribute_type, const std::vector<T>& all) {
    const auto* bytes = reinterpret_cast<const std::byte*>(all.data());
    attributes[name] = {attribute_type, static_cast<std::int64_t>(all.size()), {bytes, bytes + all.size() * sizeof(T)}};
  }
};

// The type that the documentation gives to an attribute (FLOAT also stands for DOUBLE).
cudnnBackendAttributeType_t type_of(cudnnBackendAttributeName_t name);
std::size_t bytes_of(cudnnBackendAttributeType_t type);

// Throws Refusal where what was described is not allowed or not supported.
void check(const Descriptor& descriptor);

// The engine configurations that the heuristics offer for a graph, and what else the library says of an engine.
std::vector<std::shared_ptr<Descriptor>> offered(const Descriptor& heuristics);
void describe_engine(Descriptor& engine);
std::int64_t workspace_bytes(const Descriptor& configuration);

}  // namespace emulated::cudnn
