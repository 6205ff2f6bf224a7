// Checks of the status that calls into CUDA's libraries return: a failure becomes an Error that names the call.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

#include <string_view>

namespace trainctl::cuda {

// Throws if the status is a failure: Error{resource} if memory ran out or there is no device, Error{internal}
// otherwise. The text has the name of the call and CUDA's message.
void check(cudaError_t status, std::string_view call);
void check(cudnnStatus_t status, std::string_view call);
void check(cublasStatus_t status, std::string_view call);

}  // namespace trainctl::cuda
