// The GPU's clock, which is the same on all of its processors.
#pragma once

#include <cuda_runtime.h>

namespace trainctl::cuda {

// The time in nanoseconds. Its steps may be as long as a microsecond.
__device__ inline unsigned long long nanoseconds() {
  unsigned long long now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}

}  // namespace trainctl::cuda
