// GPU memory that the kernels of one op keep from run to run.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "core/backend/cuda/runtime/check.h"

namespace trainctl::cuda {

// GPU memory that holds copies of these values; the last owner frees it.
template <class T>
std::shared_ptr<T> on_device(const std::vector<T>& values) {
  const std::size_t bytes = values.size() * sizeof(T);
  void* memory = nullptr;
  check(cudaMalloc(&memory, std::max<std::size_t>(bytes, 1)), "cudaMalloc");
  std::shared_ptr<T> owner(static_cast<T*>(memory), [](T* pointer) { cudaFree(pointer); });
  check(cudaMemcpy(memory, values.data(), bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
  check(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");  // the backend's streams do not wait for that copy
  return owner;
}

// Counters for last_block() (core/backend/cuda/device/last_block.h), set to zero.
inline std::shared_ptr<unsigned> make_counters(std::int64_t count) {
  return on_device(std::vector<unsigned>(static_cast<std::size_t>(count)));
}

}  // namespace trainctl::cuda
