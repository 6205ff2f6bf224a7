// Libraries that cuDNN opens by itself, and ends the process or does less where it does not find them.
#pragma once

#include <string>

namespace trainctl::cuda {

// Opens them from where open_cuda_library() finds them, so that cuDNN does too: before its first call. Why cuDNN cannot
// be called; "" where it can.
std::string open_companions();

// The version of NVRTC, which compiles some of cuDNN's kernels; "": it is not there, and cuDNN does without them.
std::string nvrtc_version();

}  // namespace trainctl::cuda
