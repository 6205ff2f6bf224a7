// What a GPU can do at most, measured: matrix products and a stream over memory.
#pragma once

#include "core/backend/backend.h"
#include "core/backend/cuda/runtime/device.h"

namespace trainctl::cuda {

// Large products of cuBLASLt in float32 and bfloat16, and a = b + s * c over arrays larger than the caches.
Peaks measure_peaks(const Device& device);

}  // namespace trainctl::cuda
