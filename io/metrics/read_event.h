// Events of metrics.jsonl read back, as MetricsJsonl wrote them.
#pragma once

#include <vector>

#include "core/base/json_fwd.h"
#include "core/exec/interfaces/metrics_sink.h"

namespace trainctl {

// Each takes the object of a line whose `event` is its own, and throws Json::exception where a field is missing or is
// of another type. What metrics.jsonl does not hold keeps its default.
StartEvent read_start(const Json& json);
StepEvent read_step(const Json& json);  // without `gpus`, which is a span: see read_gpus()
EpochEvent read_epoch(const Json& json);
CheckpointEvent read_checkpoint(const Json& json);
EndEvent read_end(const Json& json);

// The readings under the key `gpu` of a step.
std::vector<GpuSample> read_gpus(const Json& gpu);

}  // namespace trainctl
