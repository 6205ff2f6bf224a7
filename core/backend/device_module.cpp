// Loading the CUDA module.
#include "core/backend/device_module.h"

#include <dlfcn.h>

#include <filesystem>

#include "core/backend/cuda_libraries.h"

namespace trainctl {
namespace fs = std::filesystem;
namespace {

// Opens the module. If the loader does not find one of CUDA's libraries, opens that library by open_cuda_library() and
// tries the module again.
void* open_module(const fs::path& file, std::string& why) {
  constexpr int max_attempts = 8;  // the loader reports one missing library per attempt
  for (int attempt = 0; attempt < max_attempts; ++attempt) {
    if (void* module = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)) return module;
    const std::string message = why = dlerror();  // "libcudnn.so.9: cannot open shared object file: ..."
    const std::string missing = message.substr(0, message.find(':'));
    if (missing.find('/') != std::string::npos || open_cuda_library(missing, why) == nullptr) break;
  }
  return nullptr;
}

}  // namespace

LoadedCudaModule load_cuda_module() {
  const fs::path folder = fs::read_symlink("/proc/self/exe").parent_path();
  for (const fs::path& file : {folder / "trainctl_cuda.so", folder / "../lib/trainctl/trainctl_cuda.so"}) {
    std::error_code ignored;
    if (!fs::exists(file, ignored)) continue;
    std::string why;
    open_cuda_library(driver_library, why);  // loaded first, since the module opens it by its name alone
    void* library = open_module(file, why);
    if (library == nullptr) return {nullptr, why};
    const void* module = dlsym(library, "trainctl_cuda_module");
    if (module == nullptr) return {nullptr, dlerror()};
    return {static_cast<const CudaModule*>(module), ""};
  }
  return {nullptr, "this build of trainctl has no CUDA module"};
}

}  // namespace trainctl
