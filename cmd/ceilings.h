// What a rank's device can do at most, measured: the yardstick of bench ops.
#pragma once

#include "core/backend/backend.h"

namespace trainctl {

struct Ceilings {
  Peaks peaks;
  double copy_gb_per_s = 0;  // a large copy within the device's memory, what is read and what is written counted

  // The larger of the copy and the triad.
  double gb_per_s() const;
  // Of products of this dtype; both half types are multiplied at one rate.
  double gflops(DType dtype) const;
};

// Takes a few seconds at most, and 512 MB of the device's memory meanwhile.
Ceilings measure_ceilings(Backend& backend);

}  // namespace trainctl
