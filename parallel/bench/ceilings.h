// Measures the peak rates of a rank's device; `bench ops` compares ops with these rates.
#pragma once

#include <cstdint>
#include <vector>

#include "core/backend/backend.h"

namespace trainctl {

// The rate of repeated copies that touch `bytes` bytes. Both values count read and written bytes.
struct CopyRate {
  std::int64_t bytes = 0;
  double gb_per_s = 0;
};

struct Ceilings {
  Peaks peaks;
  double copy_gb_per_s = 0;      // a large copy within the device's memory; counts read and written bytes
  std::vector<CopyRate> cached;  // small copies, in the order of their sizes

  // Returns the ceiling for an op that touches `bytes` bytes: the higher rate of the large copy and the triad. If the
  // bytes fit into caches, small copies count, too: from the largest one down to the first that touches at most `bytes`
  // bytes.
  double gb_per_s(std::int64_t bytes) const;
  // Returns the rate of the fastest small copy.
  double cached_gb_per_s() const;
  // Returns the rate of matrix products of this dtype; both half-precision dtypes have the same rate.
  double gflops(DType dtype) const;
};

// Measures the ceilings. `threads`: number of a rank's threads on the CPU; each thread has its own caches. Takes at
// most a few seconds, and allocates 512 MB of device memory.
Ceilings measure_ceilings(Backend& backend, int threads);

}  // namespace trainctl
