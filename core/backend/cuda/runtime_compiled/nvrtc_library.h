// Opens NVRTC, the library that compiles CUDA C++ at run time, for this module and for cuDNN.
#pragma once

#include <string>

namespace trainctl::cuda {

// Opens NVRTC by open_cuda_library(). Returns null if it is missing; `why` then holds the loader's message.
void* open_nvrtc(std::string& why);

// The version of NVRTC, which compiles the kernels of expressions and some of cuDNN's kernels; "" if NVRTC is missing.
std::string nvrtc_version();

}  // namespace trainctl::cuda
