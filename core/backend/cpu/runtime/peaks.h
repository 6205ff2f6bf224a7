// The measured peaks of this machine's processor, with which `bench ops` compares kernels.
#pragma once

#include "core/backend/backend.h"

namespace trainctl {

// Measures the peaks with the OpenMP threads of the calling thread (see prepare_compute_threads()), in about a second.
Peaks measure_cpu_peaks();

}  // namespace trainctl
