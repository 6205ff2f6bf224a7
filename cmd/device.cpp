// Opening a rank's device.
#include "cmd/device.h"

#include "core/backend/select.h"
#include "core/base/error.h"
#include "core/base/format.h"

namespace trainctl {

std::unique_ptr<Backend> make_backend(const RunSpec& spec, int threads, int local_rank) {
  auto backend = make_backend(
      name_of(spec.cluster.device),
      BackendOptions{threads, local_rank, spec.train.tf32, spec.train.deterministic, spec.train.cuda_graphs});
  if (!backend->computes_in(spec.train.compute())) {
    throw Error(ErrorKind::config,
                format("train.precision: {} does not compute in {}", backend->name() == "cpu" ? "the CPU" : "the GPU",
                       name_of(spec.train.precision)),
                "use bfloat16 or float32");
  }
  return backend;
}

RankDevice open_device(const RunSpec& spec, RankContext& context) {
  RankDevice device;
  device.backend = make_backend(spec, context.threads, context.world.local_rank());
  return device;
}

}  // namespace trainctl
