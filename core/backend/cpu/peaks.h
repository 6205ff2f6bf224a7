// What this machine can do at most, measured: the yardstick of `bench ops`.
#pragma once

namespace trainctl {

struct MachinePeaks {
  double float32_gflops = 0;   // matrix multiplication
  double bfloat16_gflops = 0;  // likewise, into float32 accumulators
  double triad_gb_per_s = 0;   // a = b + s * c over arrays larger than the caches, the three of them counted
};

// Measures on the calling thread's compute threads (see CpuOptions), in about a second.
MachinePeaks measure_cpu_peaks();

}  // namespace trainctl
