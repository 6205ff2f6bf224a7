// Parses the events of metrics.jsonl that MetricsJsonl wrote.
#pragma once

#include <vector>

#include "core/base/json_fwd.h"
#include "core/exec/interfaces/metrics_sink.h"

namespace trainctl {

// Each function parses the object of a line with the corresponding `event`, and throws Json::exception if a field is
// missing or has another type. Members that metrics.jsonl does not hold keep their defaults.
StartEvent read_start(const Json& json);
StepEvent read_step(const Json& json);  // without `gpus`, which is a span: see read_gpus()
EpochEvent read_epoch(const Json& json);
CheckpointEvent read_checkpoint(const Json& json);
EndEvent read_end(const Json& json);

// Parses the readings under the key `gpu` of a step.
std::vector<GpuSample> read_gpus(const Json& gpu);

}  // namespace trainctl
