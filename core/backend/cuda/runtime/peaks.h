// The measured peaks of a GPU: matrix products and memory bandwidth.
#pragma once

#include "core/backend/backend.h"
#include "core/backend/cuda/runtime/device.h"

namespace trainctl::cuda {

// Measures large products of cuBLASLt in float32 and bfloat16, and a = b + s * c over arrays larger than the caches.
Peaks measure_peaks(const Device& device);

}  // namespace trainctl::cuda
