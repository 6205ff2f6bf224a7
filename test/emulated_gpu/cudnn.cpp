// Emulates the part of cuDNN that the CUDA module uses: handles, and the graph API's backend descriptors.
#include <cudnn.h>

#include <cstdio>
#include <functional>
#include <mutex>

#include "test/emulated_gpu/cudnn_graph.h"
#include "test/emulated_gpu/runtime.h"

using namespace emulated;
using cudnn::Descriptor;
using cudnn::Refusal;

struct cudnnContext {
  cudaStream_t stream = nullptr;
};

namespace {

// The descriptor that a handle refers to; other descriptors may share it.
using Handle = std::shared_ptr<Descriptor>;
Handle& body(cudnnBackendDescriptor_t descriptor) { return *static_cast<Handle*>(descriptor); }

// The last error of all threads.
struct LastError {
  std::mutex mutex;
  std::string text;
};
LastError& last_error() {
  static auto& error = *new LastError;
  return error;
}

// Runs a call that may throw a Refusal, and returns its status.
cudnnStatus_t attempt(const std::function<void()>& what) {
  try {
    what();
    return CUDNN_STATUS_SUCCESS;
  } catch (const Refusal& refusal) {
    const std::scoped_lock lock(last_error().mutex);
    last_error().text = "emulated cuDNN: " + refusal.why;
    return refusal.status;
  }
}

void require(bool holds, const std::string& why, cudnnStatus_t status = CUDNN_STATUS_BAD_PARAM) {
  if (!holds) throw Refusal{status, why};
}

bool agrees(cudnnBackendAttributeType_t documented, cudnnBackendAttributeType_t given) {
  return given == documented || (documented == CUDNN_TYPE_FLOAT && given == CUDNN_TYPE_DOUBLE);
}

// Fills the caller's descriptors with those that the library holds.
template <class Pointers>
std::int64_t hand_out(const Pointers& held, std::int64_t capacity, void* out) {
  const auto* handles = static_cast<cudnnBackendDescriptor_t*>(out);
  for (std::int64_t i = 0; i < std::min<std::int64_t>(capacity, std::ssize(held)); ++i) {
    Handle& target = body(handles[i]);
    const auto& source = held[static_cast<std::size_t>(i)];
    require(target->type == source->type, "the descriptors to fill have another type");
    *target = *source;
  }
  return capacity == 0 ? std::ssize(held) : std::min<std::int64_t>(capacity, std::ssize(held));
}

std::int64_t get(const Descriptor& d, cudnnBackendAttributeName_t name, std::int64_t capacity, void* out) {
  require(d.finalized, "a descriptor must be finalized before it is read");
  if (name == CUDNN_ATTR_ENGINEHEUR_RESULTS) return hand_out(cudnn::offered(d), capacity, out);
  if (name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE) {
    const std::int64_t bytes = cudnn::workspace_bytes(d.child(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG));
    if (capacity > 0) *static_cast<std::int64_t*>(out) = bytes;
    return 1;
  }
  if (name == CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE) {
    const std::int64_t bytes = cudnn::workspace_bytes(d);
    if (capacity > 0) *static_cast<std::int64_t*>(out) = bytes;
    return 1;
  }
  if (const auto found = d.children.find(name); found != d.children.end())
    return hand_out(found->second, capacity, out);
  const auto found = d.attributes.find(name);
  require(found != d.attributes.end(), "attribute " + std::to_string(name) + " is not set", CUDNN_STATUS_NOT_SUPPORTED);
  const auto count = std::min(capacity, found->second.count);
  if (count > 0) {
    std::memcpy(
        out, found->second.bytes.data(),
        found->second.bytes.size() / static_cast<std::size_t>(found->second.count) * static_cast<std::size_t>(count));
  }
  return capacity == 0 ? found->second.count : count;
}

// Writes zeros into half of a kernel's gradient.
void zero_half(const Descriptor& graph, const std::map<std::int64_t, void*>& memory) {
  const cudnn::Tensor& kernel = cudnn::Convolution(*graph.children.at(CUDNN_ATTR_OPERATIONGRAPH_OPS)[0]).w;
  std::memset(memory.at(kernel.id), 0, static_cast<std::size_t>(kernel.bytes() / 2));
}

void execute(cudnnHandle_t handle, const Descriptor& plan, const Descriptor& pack) {
  require(plan.type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR && plan.finalized, "not a finalized plan");
  require(pack.type == CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR && pack.finalized, "not a finalized variant pack");
  const Descriptor& configuration = plan.child(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  const Descriptor& engine = configuration.child(CUDNN_ATTR_ENGINECFG_ENGINE);
  const auto& graph = engine.children.at(CUDNN_ATTR_ENGINE_OPERATION_GRAPH)[0];
  const auto ids = pack.values<std::int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  const auto addresses = pack.values<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  std::map<std::int64_t, void*> memory;
  for (std::size_t i = 0; i < ids.size(); ++i) memory[ids[i]] = addresses[i];
  for (const cudnn::Tensor& tensor : cudnn::tensors_in_memory(*graph)) {
    const auto found = memory.find(tensor.id);
    require(found != memory.end(), "a tensor without an address");
    require(device_may_use(found->second, static_cast<std::size_t>(tensor.bytes())), "a tensor outside device memory");
    require(alignment_of(found->second) >= static_cast<std::size_t>(std::min<std::int64_t>(tensor.alignment, 256)),
            "a tensor is less aligned than its descriptor says");
  }
  const auto needed = static_cast<std::size_t>(cudnn::workspace_bytes(configuration));
  void* workspace = needed == 0 ? nullptr : pack.value<void*>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
  require(needed == 0 || device_may_use(workspace, needed), "the workspace is not in device memory");
  const auto index = engine.value<std::int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
  const cudaError_t status = queue(handle->stream, {Operation::Kind::device, [=] {
                                                      if (needed > 0) std::memset(workspace, 0xff, needed);
                                                      cudnn::run_graph(*graph, memory, index == 1);
                                                      if (index == cudnn::wrong_engine) zero_half(*graph, memory);
                                                    }});
  require(status == cudaSuccess, cudaGetErrorName(status), CUDNN_STATUS_EXECUTION_FAILED);
}

}  // namespace

extern "C" {

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  *handle = new cudnnContext;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  delete handle;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetStream(cudnnHandle_t handle, cudaStream_t* stream) {
  *stream = handle->stream;
  return CUDNN_STATUS_SUCCESS;
}
std::size_t cudnnGetVersion() { return CUDNN_VERSION; }
std::size_t cudnnGetCudartVersion() { return CUDART_VERSION; }
const char* cudnnGetErrorString(cudnnStatus_t status) {
  switch (status) {
    case CUDNN_STATUS_SUCCESS:
      return "CUDNN_STATUS_SUCCESS";
    case CUDNN_STATUS_BAD_PARAM:
      return "CUDNN_STATUS_BAD_PARAM";
    case CUDNN_STATUS_NOT_SUPPORTED:
      return "CUDNN_STATUS_NOT_SUPPORTED";
    default:
      return "CUDNN_STATUS_EXECUTION_FAILED";
  }
}
void cudnnGetLastErrorString(char* text, std::size_t bytes) {
  const std::scoped_lock lock(last_error().mutex);
  std::snprintf(text, bytes, "%s", last_error().text.c_str());
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t* made) {
  auto* handle = new Handle(std::make_shared<Descriptor>());
  (*handle)->type = type;
  *made = handle;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  delete static_cast<Handle*>(descriptor);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, std::int64_t count, const void* values) {
  return attempt([&] {
    Descriptor& d = *body(descriptor);
    require(!d.finalized, "a finalized descriptor cannot be changed");
    require(agrees(cudnn::type_of(name), type), "attribute " + std::to_string(name) + " has another type");
    require(count > 0 && values != nullptr, "no values");
    if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
      auto& children = d.children[name];
      children.clear();
      const auto* handles = static_cast<const cudnnBackendDescriptor_t*>(values);
      for (std::int64_t i = 0; i < count; ++i) children.push_back(body(handles[i]));
      return;
    }
    const auto* bytes = static_cast<const std::byte*>(values);
    d.attributes[name] = {type, count, {bytes, bytes + static_cast<std::size_t>(count) * cudnn::bytes_of(type)}};
  });
}

cudnnStatus_t cudnnBackendGetAttribute(const cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, std::int64_t capacity, std::int64_t* count,
                                       void* out) {
  return attempt([&] {
    require(agrees(cudnn::type_of(name), type), "attribute " + std::to_string(name) + " has another type");
    const std::int64_t found = get(*body(descriptor), name, capacity, out);
    if (count != nullptr) *count = found;
  });
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  return attempt([&] {
    Descriptor& d = *body(descriptor);
    require(!d.finalized, "a descriptor is finalized twice");
    cudnn::check(d);
    if (d.type == CUDNN_BACKEND_ENGINE_DESCRIPTOR) cudnn::describe_engine(d);
    d.finalized = true;
  });
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack) {
  return attempt([&] { execute(handle, *body(plan), *body(pack)); });
}
}
