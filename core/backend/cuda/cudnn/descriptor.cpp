// Backend descriptors of cuDNN.
#include "core/backend/cuda/cudnn/descriptor.h"

#include "core/base/format.h"

namespace trainctl::cuda {

Descriptor::Descriptor(cudnnBackendDescriptorType_t type)
    : descriptor_(make<OwnedDescriptor>(
          [type](cudnnBackendDescriptor_t* made) { return cudnnBackendCreateDescriptor(type, made); },
          "cudnnBackendCreateDescriptor")) {}

void Descriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count,
                     const void* values) {
  const cudnnStatus_t status = cudnnBackendSetAttribute(get(), name, type, count, values);
  if (status != CUDNN_STATUS_SUCCESS) check(status, format("cudnnBackendSetAttribute {}", static_cast<int>(name)));
}

void Descriptor::set(cudnnBackendAttributeName_t name, std::span<const Descriptor> children) {
  std::vector<cudnnBackendDescriptor_t> pointers;
  for (const Descriptor& child : children) pointers.push_back(child.get());
  set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<std::int64_t>(pointers.size()), pointers.data());
}

void Descriptor::finalize() { check(cudnnBackendFinalize(get()), "cudnnBackendFinalize"); }

bool Descriptor::can_finalize() { return cudnnBackendFinalize(get()) == CUDNN_STATUS_SUCCESS; }

std::int64_t Descriptor::get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t max_count,
                             void* values) const {
  std::int64_t count = 0;
  const cudnnStatus_t status = cudnnBackendGetAttribute(get(), name, type, max_count, &count, values);
  if (status != CUDNN_STATUS_SUCCESS) check(status, format("cudnnBackendGetAttribute {}", static_cast<int>(name)));
  return count;
}

std::int64_t Descriptor::count(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type) const {
  return get(name, type, 0, nullptr);
}

std::vector<Descriptor> Descriptor::children(cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t type,
                                             std::int64_t max_count) const {
  std::vector<Descriptor> children;
  std::vector<cudnnBackendDescriptor_t> pointers;
  for (std::int64_t i = 0; i < max_count; ++i) pointers.push_back(children.emplace_back(type).get());
  const std::int64_t filled = max_count == 0 ? 0 : get(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, max_count, pointers.data());
  while (static_cast<std::int64_t>(children.size()) > filled) children.pop_back();
  return children;
}

}  // namespace trainctl::cuda
