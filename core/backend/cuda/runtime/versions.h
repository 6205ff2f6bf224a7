// Versions of CUDA's libraries: those with which the module was built, and those that are installed.
#pragma once

#include <vector>

#include "core/backend/device_module.h"

namespace trainctl::cuda {

// The driver, CUDA's runtime, cuBLASLt, cuDNN, and NVRTC, which cuDNN compiles with.
std::vector<LibraryVersion> library_versions();

}  // namespace trainctl::cuda
