// Allocates memory and registers it with NCCL.
#include "parallel/comm/nccl/registered.h"

#include <algorithm>

#include "core/backend/cuda/runtime/check.h"
#include "core/base/format.h"

namespace trainctl {

Memory RegisteredMemory::allocate(ncclComm_t ranks, std::int64_t bytes, std::string& why) {
  const NcclLibrary& nccl = *state_->library;
  if (nccl.mem_alloc == nullptr || nccl.mem_free == nullptr || nccl.register_memory == nullptr ||
      nccl.deregister_memory == nullptr) {
    why = "NCCL is older than 2.19";
    return {};
  }
  const auto refused = [&](const char* call, ncclResult_t result) {
    why = format("{}: {}", call, nccl.error_string(result));
    return Memory{};
  };
  const auto size = static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1));
  void *data = nullptr, *handle = nullptr;
  if (const ncclResult_t result = nccl.mem_alloc(&data, size); result != ncclSuccess) {
    cudaGetLastError();
    return refused("ncclMemAlloc", result);
  }
  const std::shared_ptr<void> unregistered(data, [state = state_](void* memory) { state->library->mem_free(memory); });
  // cudaMemset returns before the memory is zero.
  if (cudaMemset(data, 0, size) != cudaSuccess || cudaStreamSynchronize(nullptr) != cudaSuccess) {
    cudaGetLastError();
    return refused("cudaMemset", ncclUnhandledCudaError);
  }
  if (const ncclResult_t result = nccl.register_memory(ranks, data, size, &handle); result != ncclSuccess) {
    return refused("ncclCommRegister", result);
  }
  state_->ranks = ranks;
  std::shared_ptr<std::byte> owner(static_cast<std::byte*>(data), [state = state_, unregistered, handle](std::byte*) {
    if (state->ranks != nullptr) state->library->deregister_memory(state->ranks, handle);
  });
  return {std::move(owner), bytes};
}

}  // namespace trainctl
