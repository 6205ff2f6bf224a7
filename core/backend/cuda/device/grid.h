// Helpers for kernels that process elements by a grid-stride loop, over a grid that fills the GPU.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "core/backend/cuda/device/launch.h"
#include "core/base/error.h"
#include "core/tensor/dtype.h"

namespace trainctl::cuda {

// The number of threads of a block.
inline constexpr int block_threads = 256;

// The number of blocks for independent elements, at most `max_blocks` (several waves on any GPU).
inline int blocks_for(std::int64_t elements, std::int64_t per_thread = 1, std::int64_t max_blocks = 1 << 14) {
  const std::int64_t per_block = block_threads * per_thread;
  return static_cast<int>(std::clamp<std::int64_t>((elements + per_block - 1) / per_block, 1, max_blocks));
}

// This thread's first element, and the distance to its next element.
__device__ inline std::int64_t first_element() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ inline std::int64_t element_stride() { return static_cast<std::int64_t>(gridDim.x) * blockDim.x; }

// Conversions of values in memory to float, in which kernels compute, and back with rounding to nearest even.
__device__ inline float load(float value) { return value; }
__device__ inline float load(std::uint8_t value) { return static_cast<float>(value); }
__device__ inline float load(__nv_bfloat16 value) { return __bfloat162float(value); }
__device__ inline float load(__half value) { return __half2float(value); }
template <class T>
__device__ inline T store(float value);
template <>
__device__ inline float store<float>(float value) {
  return value;
}
template <>
__device__ inline __nv_bfloat16 store<__nv_bfloat16>(float value) {
  return __float2bfloat16_rn(value);
}
template <>
__device__ inline __half store<__half>(float value) {
  return __float2half_rn(value);
}

// The sum over the threads of a block, in a fixed order, returned to all threads. `shared` has 32 values. All threads
// of the block must call this function.
template <class T>
__device__ inline T block_sum(T value, T* shared) {
  for (int distance = 16; distance > 0; distance /= 2) value += __shfl_xor_sync(0xffffffffu, value, distance);
  const int warp = threadIdx.x / 32, warps = (blockDim.x + 31) / 32;
  __syncthreads();  // an earlier sum may still be read
  if (threadIdx.x % 32 == 0) shared[warp] = value;
  __syncthreads();
  T sum = 0;
  for (int i = 0; i < warps; ++i) sum += shared[i];
  return sum;
}

// Calls make(T{}) with the CUDA type of a floating-point dtype.
template <class Make>
auto with_type(DType dtype, const Make& make) {
  switch (dtype) {
    case DType::bfloat16:
      return make(__nv_bfloat16{});
    case DType::float16:
      return make(__half{});
    default:
      require(dtype == DType::float32, "CUDA kernels do not compute in this dtype");
      return make(float{});
  }
}

}  // namespace trainctl::cuda
