// The choice of a backend.
#include "core/backend/select.h"

#include "core/backend/cpu/cpu_backend.h"
#include "core/backend/device_module.h"
#include "core/base/error.h"
#include "core/base/format.h"

namespace trainctl {

std::unique_ptr<Backend> make_backend(std::string_view device, const BackendOptions& options) {
  if (device == "auto" || device == "cpu") return make_cpu_backend(options);
  if (device == "cuda") {
    const LoadedCudaModule loaded = load_cuda_module();
    if (loaded.module != nullptr) return loaded.module->make_backend(options);
    throw Error(ErrorKind::resource, "no CUDA device can be used: " + loaded.why,
                "set cluster.device to cpu or auto, or pass --device cpu");
  }
  throw Error(ErrorKind::config, format("unknown device '{}'", device), "use auto, cpu or cuda");
}

}  // namespace trainctl
