// The search for GPUs and the choice of a backend.
#include "core/backend/select.h"

#include <utility>

#include "core/backend/cpu/cpu_backend.h"
#include "core/backend/cuda_libraries.h"
#include "core/base/error.h"
#include "core/base/format.h"

namespace trainctl {

FoundGpus find_gpus(std::string_view device) {
  if (device == "cpu") return {nullptr, {}, "the CPU was requested", ""};
  std::string why;
  // Loading CUDA's libraries takes a tenth of a second, which a run without a driver saves by this check.
  if (device == "auto" && open_cuda_library(driver_library, why) == nullptr) {
    return {nullptr, {}, "there is no NVIDIA driver", ""};
  }
  const LoadedCudaModule loaded = load_cuda_module();
  if (loaded.module == nullptr) return {nullptr, {}, loaded.why, ""};
  VisibleGpus visible = loaded.module->gpus();
  return {loaded.module, std::move(visible.gpus), std::move(visible.why), std::move(visible.remedy)};
}

std::unique_ptr<Backend> make_backend(std::string_view device, const BackendOptions& options) {
  if (device != "auto" && device != "cpu" && device != "cuda") {
    throw Error(ErrorKind::config, format("unknown device '{}'", device), "use auto, cpu or cuda");
  }
  const FoundGpus found = find_gpus(device);
  if (!found.gpus.empty()) return found.module->make_backend(options);
  if (device != "cuda") return make_cpu_backend(options);
  refuse_without_gpu(found);
}

}  // namespace trainctl
