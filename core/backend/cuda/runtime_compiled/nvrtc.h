// Compiles CUDA C++ with NVRTC, which is opened when it is first needed.
#pragma once

#include <string>

namespace trainctl::cuda {

// Returns the source's code for GPUs of a compute capability (90 for 9.0), which cudaLibraryLoadData() loads. If NVRTC
// is older than the GPU, the code is that of an older GPU as PTX. Throws Error{resource} if NVRTC is missing,
// Error{internal} with the compiler's messages if it refuses the source. Needs no GPU.
std::string compile_source(const std::string& source, int capability);

}  // namespace trainctl::cuda
