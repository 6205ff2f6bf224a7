// Opens the libraries that cuDNN opens by itself.
#include "core/backend/cuda/cudnn/companions.h"

#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <dlfcn.h>

#include <filesystem>

#include "core/backend/cuda_libraries.h"
#include "core/base/format.h"

namespace trainctl::cuda {
namespace fs = std::filesystem;
namespace {

void* open_nvrtc() {
  std::string ignored;
  return open_cuda_library(format("libnvrtc.so.{}", CUDART_VERSION / 1000), ignored);
}

}  // namespace

std::string open_companions() {
  open_nvrtc();
  Dl_info cudnn{};
  if (dladdr(reinterpret_cast<void*>(cudnnGetVersion), &cudnn) == 0) return "";
  const fs::path file = cudnn.dli_fname;
  if (!file.filename().string().starts_with("libcudnn.so")) return "";  // linked statically
  const std::string graph = format("libcudnn_graph.so.{}", CUDNN_MAJOR);
  std::string why;
  if (open_cuda_library((file.parent_path() / graph).string(), why) != nullptr ||
      open_cuda_library(graph, why) != nullptr) {
    return "";
  }
  return format("{} is in {}, but its library {} cannot be loaded: {}", file.filename().string(),
                file.parent_path().string(), graph, why);
}

std::string nvrtc_version() {
  void* library = open_nvrtc();
  if (library == nullptr) return "";
  int major = 0, minor = 0;
  const auto version = reinterpret_cast<int (*)(int*, int*)>(dlsym(library, "nvrtcVersion"));
  return version != nullptr && version(&major, &minor) == 0 ? format("{}.{}", major, minor) : "";
}

}  // namespace trainctl::cuda
