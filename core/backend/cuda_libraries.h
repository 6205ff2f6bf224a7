// Finds the libraries of CUDA and of the driver: on the loader's paths, in the toolkit, in Python environments, and in
// the folders where containers and WSL put a driver.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace trainctl {

// The driver's library that CUDA calls.
inline constexpr const char* driver_library = "libcuda.so.1";

// The existing folders that are searched after the loader's own, in order: CUDA_HOME, the toolkit's usual folder,
// nvidia/*/lib of the active Python environment, of the Python environments in PATH, of the user's packages and of the
// system's packages, and the folders where containers mount the driver's libraries.
std::vector<std::filesystem::path> cuda_library_folders();

// Opens a library by the loader's own search, then from cuda_library_folders(). The library stays loaded, so that
// libraries that need it by name find it. Returns null if it is not found or cannot be loaded; `why` then holds the
// loader's message.
void* open_cuda_library(const std::string& name, std::string& why);

}  // namespace trainctl
