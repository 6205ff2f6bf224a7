// Support for kernels whose last block combines the results of all blocks, so that sums over blocks need no further
// launch.
//
// Which block is last differs from run to run, but it sums in the order of the blocks: the same bits every time.
#pragma once

#include "core/backend/cuda/device/grid.h"

namespace trainctl::cuda {

// Called by all threads of each of `blocks` blocks after they wrote their part. Returns true in the last block to call
// it, which reads the parts by fresh(). The counter is zero before the kernel and after it.
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

// Reads a value that another block wrote, bypassing this multiprocessor's own cache.
template <class T>
__device__ inline T fresh(const T* place) {
  return __ldcg(place);
}

// *sum (+)= the sum of `count` values that other blocks may have written, in a fixed order. All threads of the last
// block call it.
__device__ inline void sum_in_block(const float* values, std::int64_t count, bool accumulate, float* sum) {
  __shared__ float shared[32];
  float part = 0;
  for (std::int64_t i = threadIdx.x; i < count; i += blockDim.x) part += fresh(values + i);
  part = block_sum(part, shared);
  if (threadIdx.x == 0) *sum = accumulate ? *sum + part : part;
}

}  // namespace trainctl::cuda
