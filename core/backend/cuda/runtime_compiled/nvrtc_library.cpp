// Opens NVRTC.
#include "core/backend/cuda/runtime_compiled/nvrtc_library.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include "core/backend/cuda_libraries.h"
#include "core/base/format.h"

namespace trainctl::cuda {

void* open_nvrtc(std::string& why) { return open_cuda_library(format("libnvrtc.so.{}", CUDART_VERSION / 1000), why); }

std::string nvrtc_version() {
  std::string ignored;
  void* library = open_nvrtc(ignored);
  if (library == nullptr) return "";
  int major = 0, minor = 0;
  const auto version = reinterpret_cast<int (*)(int*, int*)>(dlsym(library, "nvrtcVersion"));
  return version != nullptr && version(&major, &minor) == 0 ? format("{}.{}", major, minor) : "";
}

}  // namespace trainctl::cuda
