// What a run tells of its ranks' GPUs.
#pragma once

#include <memory>

#include "cmd/run_spec.h"
#include "core/backend/backend.h"
#include "parallel/comm/select.h"
#include "parallel/health/gpus.h"

namespace trainctl {

// Null where ranks compute on the CPU, or log.gpu is false. On all ranks together.
std::unique_ptr<GpuWatch> watch_gpus(const RunSpec& spec, const Backend& backend, World& world, Stream& stream,
                                     std::int64_t log_every);

// FLOP/s of as many GPUs as there are ranks, by the data sheet for the config's precision; 0 where that is not known.
double peak_flops(const RunSpec& spec, const Backend& backend, int ranks);

}  // namespace trainctl
