// The choice of a backend. No other file knows which backends exist.
#pragma once

#include <memory>
#include <string_view>

#include "core/backend/backend.h"
#include "core/backend/device_module.h"
#include "core/base/error.h"

namespace trainctl {

// The GPUs that are visible to a process, for the device that its config names. The list is empty for cpu, and for auto
// without an NVIDIA driver; in both cases no module is loaded. If the list is empty, `why` holds the reason, and
// `remedy`, which may be empty, says what to do.
struct FoundGpus {
  const CudaModule* module = nullptr;
  std::vector<Gpu> gpus;
  std::string why, remedy;
};
FoundGpus find_gpus(std::string_view device);

// Throws Error{resource} because a GPU was requested, but no GPU can be used. `Failure` is CollectiveError if all ranks
// throw it.
template <class Failure = Error>
[[noreturn]] void refuse_without_gpu(const FoundGpus& found) {
  throw Failure(ErrorKind::resource, "no CUDA device can be used: " + found.why,
                (found.remedy.empty() ? "" : found.remedy + "; or ") + "compute on the CPU (--device cpu)");
}

// `device` is the config's device: auto (cuda if there is a GPU), cpu or cuda. The thread that runs the rank must call
// this function and use the backend. Throws Error{resource} if the device is missing.
std::unique_ptr<Backend> make_backend(std::string_view device, const BackendOptions& options = {});

}  // namespace trainctl
