// The CUDA interpreter: cuDNN, cuBLASLt and our own kernels behind the Backend interface.
#pragma once

#include <memory>

#include "core/backend/backend.h"

namespace trainctl {

// On the GPU of the local rank. To be made and used on the thread that runs the rank. Throws Error{resource} where
// there is no device.
std::unique_ptr<Backend> make_cuda_backend(const BackendOptions& options);

}  // namespace trainctl
