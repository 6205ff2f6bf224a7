// Throws the errors for failures of CUDA's libraries.
#include "core/backend/cuda/runtime/check.h"

#include "core/base/error.h"
#include "core/base/format.h"

namespace trainctl::cuda {

void check(cudaError_t status, std::string_view call) {
  if (status == cudaSuccess) return;
  const bool unavailable = status == cudaErrorMemoryAllocation || status == cudaErrorNoDevice ||
                           status == cudaErrorInsufficientDriver || status == cudaErrorDevicesUnavailable;
  throw Error(unavailable ? ErrorKind::resource : ErrorKind::internal,
              format("{}: {} ({})", call, cudaGetErrorString(status), cudaGetErrorName(status)));
}

void check(cudnnStatus_t status, std::string_view call) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  char detail[512] = {};
  cudnnGetLastErrorString(detail, sizeof detail);
  throw Error(ErrorKind::internal, format("{}: {} {}", call, cudnnGetErrorString(status), detail));
}

void check(cublasStatus_t status, std::string_view call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw Error(status == CUBLAS_STATUS_ALLOC_FAILED ? ErrorKind::resource : ErrorKind::internal,
              format("{}: {}", call, cublasLtGetStatusString(status)));
}

}  // namespace trainctl::cuda
