// The CUDA backend: implements the Backend interface with cuDNN, cuBLASLt and this project's kernels.
#pragma once

#include <memory>

#include "core/backend/backend.h"

namespace trainctl {

// Makes the backend for the GPU of the local rank. The thread that runs the rank must call this function and use the
// backend. Throws Error{resource} if there is no usable GPU.
std::unique_ptr<Backend> make_cuda_backend(const BackendOptions& options);

}  // namespace trainctl
