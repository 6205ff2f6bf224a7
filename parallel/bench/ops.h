// Measures every op of a run's step, and compares it with the ceilings of the rank's device.
#pragma once

#include <string>
#include <vector>

#include "core/exec/observe/op_recorder.h"

namespace trainctl {

struct BenchedRun;
struct Ceilings;

struct OpBench {
  std::vector<OpCost> costs;  // costs of ops of the engine's programs, which must outlive it
  double step_seconds = 0;    // median time of a step in which no op is observed
};

// Runs steps on one batch for `seconds` seconds after a warm-up: half of the time without observation, half with
// observed ops. All ranks must call this function; it returns the result of this rank.
OpBench bench_ops(const BenchedRun& run, double seconds);

// Return the result as a JSON document on one line, and as a table for people: each op's rates and their fractions of
// the ceilings.
std::string to_json(const OpBench& bench, const Ceilings& ceilings);
std::string to_text(const OpBench& bench, const Ceilings& ceilings);

}  // namespace trainctl
