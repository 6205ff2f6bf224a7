// Every op of a run's step measured, beside the ceilings of the rank's device.
#pragma once

#include <string>
#include <vector>

#include "core/exec/observe/op_recorder.h"

namespace trainctl {

struct BenchedRun;
struct Ceilings;

struct OpBench {
  std::vector<OpCost> costs;  // of the engine's programs, which outlive it
  double step_seconds = 0;    // of a step in which no op is observed, the median
};

// Steps on one batch for so many seconds, after some to warm up: half of the time as they are, half with their ops
// observed. Collective; the result is that of the rank.
OpBench bench_ops(const BenchedRun& run, double seconds);

// One JSON document of a line, and a table for people: each op's rates and their shares of the ceilings.
std::string to_json(const OpBench& bench, const Ceilings& ceilings);
std::string to_text(const OpBench& bench, const Ceilings& ceilings);

}  // namespace trainctl
