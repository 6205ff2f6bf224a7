// The libraries that cuDNN opens by itself. Where it does not find them, cuDNN ends the process or offers fewer
// engines.
#pragma once

#include <string>

namespace trainctl::cuda {

// Opens these libraries by open_cuda_library(), so that cuDNN finds them too. Must run before the first call of cuDNN.
// Returns why cuDNN cannot be called; "" where it can.
std::string open_companions();

// The version of NVRTC, which compiles some of cuDNN's kernels; "" where NVRTC is missing and cuDNN works without these
// kernels.
std::string nvrtc_version();

}  // namespace trainctl::cuda
