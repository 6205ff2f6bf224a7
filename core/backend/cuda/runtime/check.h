// The status of every call into CUDA's libraries, checked: a failure becomes an Error that names the call.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

#include <string_view>

namespace trainctl::cuda {

// Throws Error{resource} where memory ran out or no device is there, Error{internal} otherwise: what was called, and
// CUDA's own words.
void check(cudaError_t status, std::string_view call);
void check(cudnnStatus_t status, std::string_view call);
void check(cublasStatus_t status, std::string_view call);

}  // namespace trainctl::cuda
