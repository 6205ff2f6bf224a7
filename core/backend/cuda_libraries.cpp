// The search for CUDA's libraries.
#include "core/backend/cuda_libraries.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

namespace trainctl {
namespace fs = std::filesystem;
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::vector<fs::path> entries(const fs::path& folder) {
  std::error_code ignored;
  std::vector<fs::path> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

// Adds ROOT/lib/python3.11/site-packages/nvidia/cudnn/lib and the folders of NVIDIA's other packages.
void add_python(std::vector<fs::path>& folders, const fs::path& root) {
  for (const fs::path& python : entries(root / "lib")) {
    if (!python.filename().string().starts_with("python3")) continue;
    for (const char* packages : {"site-packages", "dist-packages"}) {
      for (const fs::path& library : entries(python / packages / "nvidia")) folders.push_back(library / "lib");
    }
  }
}

}  // namespace

std::vector<fs::path> cuda_library_folders() {
  std::vector<fs::path> folders;
  for (const char* name : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const std::string home = variable(name); !home.empty()) folders.push_back(fs::path(home) / "lib64");
  }
  folders.emplace_back("/usr/local/cuda/lib64");
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    if (const std::string root = variable(name); !root.empty()) add_python(folders, root);
  }
  std::error_code ignored;
  std::istringstream path(variable("PATH"));
  for (std::string folder; std::getline(path, folder, ':');) {
    if (fs::exists(folder + "/python3", ignored)) add_python(folders, fs::path(folder).parent_path());
  }
  if (const std::string home = variable("HOME"); !home.empty()) add_python(folders, fs::path(home) / ".local");
  add_python(folders, "/usr/local");
  for (const char* driver : {"/usr/local/nvidia/lib64", "/usr/local/nvidia/lib", "/usr/lib/wsl/lib"}) {
    folders.emplace_back(driver);
  }
  std::vector<fs::path> unique;
  for (const fs::path& folder : folders) {
    if (fs::is_directory(folder, ignored) && std::find(unique.begin(), unique.end(), folder) == unique.end())
      unique.push_back(folder);
  }
  return unique;
}

void* open_cuda_library(const std::string& name, std::string& why) {
  constexpr int mode = RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE;
  if (void* library = dlopen(name.c_str(), mode)) return library;
  why = dlerror();
  if (fs::path(name).is_absolute()) return nullptr;
  for (const fs::path& folder : cuda_library_folders()) {
    std::error_code ignored;
    if (!fs::exists(folder / name, ignored)) continue;
    if (void* library = dlopen((folder / name).c_str(), mode)) return library;
    why = dlerror();
  }
  return nullptr;
}

}  // namespace trainctl
