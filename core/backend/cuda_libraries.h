// Where CUDA's libraries and the driver's may lie: the loader's own paths, the toolkit, Python environments, and the
// folders that containers and WSL put a driver into.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace trainctl {

// The driver's part that CUDA works with.
inline constexpr const char* driver_library = "libcuda.so.1";

// The folders beyond the loader's own that are searched, in order: CUDA_HOME, the toolkit's usual place, then
// nvidia/*/lib of the Python environment in use, of those in PATH, and of the user's and the system's packages; and
// where the driver's libraries are mounted without the loader's knowing.
std::vector<std::filesystem::path> cuda_library_folders();

// dlopen by the loader's own search, then from these folders; the library stays loaded, so that others that need it by
// name find it. Null where it is nowhere, or cannot be loaded: `why` then says so.
void* open_cuda_library(const std::string& name, std::string& why);

}  // namespace trainctl
