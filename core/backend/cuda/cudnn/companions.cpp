// Opens the libraries that cuDNN opens by itself.
#include "core/backend/cuda/cudnn/companions.h"

#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <dlfcn.h>

#include <filesystem>

#include "core/backend/cuda/runtime_compiled/nvrtc_library.h"
#include "core/backend/cuda_libraries.h"
#include "core/base/format.h"

namespace trainctl::cuda {
namespace fs = std::filesystem;

std::string open_companions() {
  std::string why;
  open_nvrtc(why);
  Dl_info cudnn{};
  if (dladdr(reinterpret_cast<void*>(cudnnGetVersion), &cudnn) == 0) return "";
  const fs::path file = cudnn.dli_fname;
  if (!file.filename().string().starts_with("libcudnn.so")) return "";  // linked statically
  const std::string graph = format("libcudnn_graph.so.{}", CUDNN_MAJOR);
  if (open_cuda_library((file.parent_path() / graph).string(), why) != nullptr ||
      open_cuda_library(graph, why) != nullptr) {
    return "";
  }
  return format("{} is in {}, but its library {} cannot be loaded: {}", file.filename().string(),
                file.parent_path().string(), graph, why);
}

}  // namespace trainctl::cuda
