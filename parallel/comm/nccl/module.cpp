// Defines the symbol that trainctl looks up in this shared library.
#include "core/backend/cuda/cuda_backend.h"
#include "core/backend/cuda/runtime/device.h"
#include "core/backend/cuda/runtime/versions.h"
#include "core/backend/device_module.h"
#include "parallel/comm/nccl/nccl.h"

namespace {

std::vector<trainctl::LibraryVersion> versions() {
  auto all = trainctl::cuda::library_versions();
  all.push_back(trainctl::nccl_version());
  return all;
}

}  // namespace

extern "C" {
extern const trainctl::CudaModule trainctl_cuda_module;
const trainctl::CudaModule trainctl_cuda_module = {trainctl::make_cuda_backend, trainctl::cuda::visible_gpus,
                                                   trainctl::why_no_nccl,       trainctl::nccl_shares_gpus,
                                                   trainctl::nccl_communicator, versions};
}
