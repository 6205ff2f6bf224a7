// What the program finds in this shared library.
#include "core/backend/cuda/cuda_backend.h"
#include "core/backend/device_module.h"

extern "C" {
extern const trainctl::CudaModule trainctl_cuda_module;
const trainctl::CudaModule trainctl_cuda_module = {trainctl::make_cuda_backend};
}
