// What this machine can do at most, measured: the yardstick of `bench ops`.
#pragma once

#include "core/backend/backend.h"

namespace trainctl {

// Measures on the calling thread's compute threads (see CpuOptions), in about a second.
Peaks measure_cpu_peaks();

}  // namespace trainctl
