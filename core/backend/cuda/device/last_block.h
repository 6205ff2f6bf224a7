// Kernels whose last block completes what all of them began, so that sums over blocks need no launch of their own.
//
// Which block is last differs from run to run, but it sums in the order of the blocks: the same bits every time.
#pragma once

#include "core/backend/cuda/device/grid.h"

namespace trainctl::cuda {

// Called by all threads of each of `blocks` blocks after they wrote their part: true in the one that comes last, which
// reads the parts by fresh(). The counter is zero before the kernel and after it.
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

// A value that another block wrote: not from this processor's own cache.
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
