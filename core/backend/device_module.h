// Device interpreters in shared libraries of their own, loaded at run time: one program for machines with and without
// the device.
#pragma once

#include <memory>
#include <string>

#include "core/backend/backend.h"

namespace trainctl {

// What the module trainctl_cuda.so offers, under the symbol `trainctl_cuda_module`.
struct CudaModule {
  // On the GPU of the local rank. Throws Error{resource} where there is none.
  std::unique_ptr<Backend> (*make_backend)(const BackendOptions& options);
};

// Where the module was not loaded, `module` is null and `why` says the reason.
struct LoadedCudaModule {
  const CudaModule* module = nullptr;
  std::string why;
};

// Loads the module that lies beside the program, or in ../lib/trainctl from there. It stays loaded.
LoadedCudaModule load_cuda_module();

}  // namespace trainctl
