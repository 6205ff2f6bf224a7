// Watching the GPUs that ranks compute on.
#include "cmd/gpus.h"

#include "core/backend/gpu_peaks.h"
#include "core/backend/select.h"
#include "core/base/error.h"
#include "core/base/log.h"

namespace trainctl {
namespace {

std::unique_ptr<GpuMonitor> monitor_of(const World& world) {
  const FoundGpus found = find_gpus("cuda");
  if (found.gpus.empty()) return nullptr;
  const Gpu& own = found.gpus[static_cast<std::size_t>(world.local_rank()) % found.gpus.size()];
  try {
    return std::make_unique<GpuMonitor>(own.uuid);
  } catch (const Error& error) {
    log::info(std::string("no figures of the GPU: ") + error.what());
    return nullptr;
  }
}

}  // namespace

std::unique_ptr<GpuWatch> watch_gpus(const RunSpec& spec, const Backend& backend, World& world, Stream& stream,
                                     std::int64_t log_every) {
  if (!spec.log.gpu || backend.on_host()) return nullptr;
  return std::make_unique<GpuWatch>(monitor_of(world), world.communicator(), stream, log_every);
}

double peak_flops(const RunSpec& spec, const Backend& backend, int ranks) {
  return ranks * datasheet_flops(backend.fingerprint(), spec.train.compute(), spec.train.tf32);
}

}  // namespace trainctl
