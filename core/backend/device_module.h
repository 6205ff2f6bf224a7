// Device interpreters in shared libraries of their own, loaded at run time: one program for machines with and without
// the device.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "core/backend/backend.h"
#include "core/backend/communicator.h"

namespace trainctl {

// A GPU that CUDA shows to this process.
struct Gpu {
  int index = 0;           // among the visible ones
  std::string name;        // "NVIDIA H100 80GB HBM3"
  std::string uuid;        // "GPU-5fd1c1a2-...", or "MIG-...": the same GPU has the same one in all processes
  std::string pci_bus_id;  // "0000:17:00.0", as Linux names its folder below /sys/bus/pci/devices
  std::int64_t memory_bytes = 0;
  int major = 0, minor = 0;  // compute capability
  std::string why_not;       // why the module cannot compute on it; "" where it can
};

// The GPU that a host's local rank computes on, of those that its process sees, in CUDA's order; null where it sees
// none. Ranks beyond the number of GPUs share them.
inline const Gpu* gpu_of_rank(const std::vector<Gpu>& visible, int local_rank) {
  return visible.empty() ? nullptr : &visible[static_cast<std::size_t>(local_rank) % visible.size()];
}

struct VisibleGpus {
  std::vector<Gpu> gpus;
  std::string why, remedy;  // CUDA's reason where there are none, and what to do
};

// A library that the module works with. "": not there, or of no meaning.
struct LibraryVersion {
  std::string name;   // "cuDNN"
  std::string built;  // the version that the module was built with
  std::string found;
};

// What the module trainctl_cuda.so offers, under the symbol `trainctl_cuda_module`.
struct CudaModule {
  // On the GPU of the local rank. Throws Error{resource} where there is none that can be used.
  std::unique_ptr<Backend> (*make_backend)(const BackendOptions& options);

  // The visible GPUs in CUDA's order, which CUDA_VISIBLE_DEVICES decides. Takes no memory of theirs, and throws
  // nothing.
  VisibleGpus (*gpus)();

  // Why this process cannot use NCCL; "" where it can.
  std::string (*why_no_nccl)();

  // NCCL between the GPUs of the ranks of `host`, which the communicator keeps for itself. Collective. The deadline
  // holds from here on. Throws Error{peer} where a rank does not come, Error{resource} where NCCL refuses.
  std::unique_ptr<Communicator> (*make_nccl)(std::unique_ptr<Communicator> host, Backend& backend,
                                             std::chrono::milliseconds deadline);

  // CUDA, the newest that the driver can do, cuBLASLt, cuDNN, NVRTC and NCCL.
  std::vector<LibraryVersion> (*versions)();
};

// Where the module was not loaded, `module` is null and `why` says the reason.
struct LoadedCudaModule {
  const CudaModule* module = nullptr;
  std::string why;
};

// Loads the module that lies beside the program, or in ../lib/trainctl from there. It stays loaded.
LoadedCudaModule load_cuda_module();

}  // namespace trainctl
