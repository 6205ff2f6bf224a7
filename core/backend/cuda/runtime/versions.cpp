// Asks CUDA's libraries for their versions.
#include "core/backend/cuda/runtime/versions.h"

#include "core/backend/cuda/cudnn/companions.h"
#include "core/backend/cuda/runtime/check.h"
#include "core/backend/cuda/runtime_compiled/nvrtc_library.h"
#include "core/base/format.h"

namespace trainctl::cuda {
namespace {

// Returns text such as "13.0" for 13000; "" for 0.
std::string runtime_text(int version) {
  return version == 0 ? "" : format("{}.{}", version / 1000, version % 1000 / 10);
}

// Returns text such as "9.19.0" for 91900.
std::string library_text(std::size_t version) {
  return format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace

std::vector<LibraryVersion> library_versions() {
  int driver = 0, runtime = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess) driver = 0;
  if (cudaRuntimeGetVersion(&runtime) != cudaSuccess) runtime = 0;
  return {{"driver for CUDA", "", runtime_text(driver)},
          {"CUDA", runtime_text(CUDART_VERSION), runtime_text(runtime)},
          {"cuBLASLt", library_text(CUBLAS_VERSION), library_text(cublasLtGetVersion())},
          {"cuDNN", library_text(CUDNN_VERSION), open_companions().empty() ? library_text(cudnnGetVersion()) : ""},
          {"NVRTC", "", nvrtc_version()}};
}

}  // namespace trainctl::cuda
