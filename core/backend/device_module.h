// The CUDA backend as a shared library that is loaded at run time, so that one program serves machines with and without
// a GPU.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/backend/backend.h"
#include "core/backend/communicator.h"

namespace trainctl {

// A GPU that CUDA shows to this process.
struct Gpu {
  int index = 0;           // index among the visible GPUs
  std::string name;        // "NVIDIA H100 80GB HBM3"
  std::string uuid;        // "GPU-5fd1c1a2-...", or "MIG-..."; equal for the same GPU in all processes
  std::string pci_bus_id;  // "0000:17:00.0", as Linux names its folder below /sys/bus/pci/devices
  std::int64_t memory_bytes = 0;
  int major = 0, minor = 0;  // compute capability
  std::string why_not;       // why the module cannot compute on the GPU; "" if it can
};

// The GPU on which a local rank computes, chosen from the GPUs that are visible to its process, in CUDA's order; null
// if none is visible. If there are more ranks than GPUs, ranks share GPUs.
inline const Gpu* gpu_of_rank(const std::vector<Gpu>& visible, int local_rank) {
  return visible.empty() ? nullptr : &visible[static_cast<std::size_t>(local_rank) % visible.size()];
}

struct VisibleGpus {
  std::vector<Gpu> gpus;
  std::string why, remedy;  // if there are no GPUs: CUDA's reason, and what to do about it
};

// The versions of a library that the module uses; "" if the library is missing or the version has no meaning.
struct LibraryVersion {
  std::string name;   // "cuDNN"
  std::string built;  // the version that the module was built with
  std::string found;  // the version that is loaded
};

// The functions of the module trainctl_cuda.so, which exports this struct as the symbol `trainctl_cuda_module`.
struct CudaModule {
  // Makes the backend for the GPU of the local rank. Throws Error{resource} if no GPU can be used.
  std::unique_ptr<Backend> (*make_backend)(const BackendOptions& options);

  // The visible GPUs in CUDA's order, which CUDA_VISIBLE_DEVICES decides. Allocates no GPU memory and throws no
  // exception.
  VisibleGpus (*gpus)();

  // Returns the reason why this process cannot use NCCL; "" if it can use NCCL.
  std::string (*why_no_nccl)();

  // Whether this process's NCCL lets several ranks use one GPU: since NCCL 2.30 it does so if the environment variable
  // NCCL_MULTI_RANK_GPU_ENABLE is 1.
  bool (*nccl_shares_gpus)();

  // Makes an NCCL communicator between the GPUs of the ranks of `host`. The new communicator owns `host` and shares its
  // attendance. `will_split`: whether other communicators will be split from it and used beside it. All ranks must call
  // this function. Throws Error{peer} if a rank does not join, Error{resource} if NCCL fails.
  std::unique_ptr<Communicator> (*make_nccl)(std::unique_ptr<Communicator> host, Backend& backend, bool will_split);

  // The versions of the driver, CUDA's runtime, cuBLASLt, cuDNN, NVRTC and NCCL.
  std::vector<LibraryVersion> (*versions)();
};

// `module` is null if the module was not loaded, and `why` then holds the reason.
struct LoadedCudaModule {
  const CudaModule* module = nullptr;
  std::string why;
};

// Loads the module from the program's folder, or from ../lib/trainctl relative to that folder. The module stays loaded.
LoadedCudaModule load_cuda_module();

}  // namespace trainctl
