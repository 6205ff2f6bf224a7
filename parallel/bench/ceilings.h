// The highest rates of a rank's device, measured: bench ops compares ops with them.
#pragma once

#include <cstdint>
#include <vector>

#include "core/backend/backend.h"

namespace trainctl {

// The rate of copies that touch so many bytes, again and again: what is read and what is written counted, in both.
struct CopyRate {
  std::int64_t bytes = 0;
  double gb_per_s = 0;
};

struct Ceilings {
  Peaks peaks;
  double copy_gb_per_s = 0;      // a large copy within the device's memory, what is read and what is written counted
  std::vector<CopyRate> cached;  // small ones, the smallest first

  // For an op that touches so many bytes: of the copies, small and large, and the triad those that touch no less than
  // the largest small one up to its size; the fastest counts.
  double gb_per_s(std::int64_t bytes) const;
  // The fastest small copy.
  double cached_gb_per_s() const;
  // The rate of products of this dtype; both half types are multiplied at one rate.
  double gflops(DType dtype) const;
};

// `threads`: of a rank on the CPU; each has caches of its own. Takes a few seconds at most, and 512 MB of the device's
// memory meanwhile.
Ceilings measure_ceilings(Backend& backend, int threads);

}  // namespace trainctl
