// Support for kernels in which the last block combines the results of all blocks, so that sums over blocks need no
// further launch.
//
// Which block is last differs from run to run, but it sums in the order of the blocks, so that the result has the same
// bits every time.
#pragma once

#include "core/backend/cuda/device/grid.h"

namespace trainctl::cuda {

// All threads of all `blocks` blocks must call this function after they have written the results of their block.
// Returns true in the last block that calls it; this block then reads the results of all blocks with fresh(). The
// counter must be zero before the kernel, and is zero after it.
__device__ inline bool last_block(unsigned* counter, unsigned blocks) {
  __shared__ bool last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    last = atomicAdd(counter, 1u) == blocks - 1;
    if (last) *counter = 0;
  }
  __syncthreads();
  __threadfence();
  return last;
}

// Reads a value that another block wrote, bypassing this multiprocessor's L1 cache.
template <class T>
__device__ inline T fresh(const T* address) {
  return __ldcg(address);
}

// Sets *sum to the sum of `count` values, which other blocks may have written, or adds it to *sum with `accumulate`.
// The order of the additions is fixed. All threads of the last block must call this function.
__device__ inline void sum_in_block(const float* values, std::int64_t count, bool accumulate, float* sum) {
  __shared__ float shared[32];
  float own = 0;
  for (std::int64_t i = threadIdx.x; i < count; i += blockDim.x) own += fresh(values + i);
  own = block_sum(own, shared);
  if (threadIdx.x == 0) *sum = accumulate ? *sum + own : own;
}

}  // namespace trainctl::cuda
