// Loading the CUDA module.
#include "core/backend/device_module.h"

#include <dlfcn.h>

#include <filesystem>

namespace trainctl {
namespace fs = std::filesystem;

LoadedCudaModule load_cuda_module() {
  const fs::path folder = fs::read_symlink("/proc/self/exe").parent_path();
  for (const fs::path& file : {folder / "trainctl_cuda.so", folder / "../lib/trainctl/trainctl_cuda.so"}) {
    std::error_code ignored;
    if (!fs::exists(file, ignored)) continue;
    void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library == nullptr) return {nullptr, dlerror()};
    const void* module = dlsym(library, "trainctl_cuda_module");
    if (module == nullptr) return {nullptr, dlerror()};
    return {static_cast<const CudaModule*>(module), ""};
  }
  return {nullptr, "this build of trainctl has no CUDA module"};
}

}  // namespace trainctl
