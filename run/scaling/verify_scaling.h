// Checks that a config produces the same weights, bit for bit, on several numbers of ranks.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/json_fwd.h"
#include "run/scaling/scaling_difference.h"
#include "run/scaling/scaling_runs.h"

namespace trainctl {

struct LaunchFlags;
struct RunSpec;
struct Situation;

// The runs of a config on several numbers of ranks, compared with the first of them.
struct ScalingComparison {
  std::vector<ScaledRun> runs;                  // at least two, without their directories
  std::optional<ScalingDifference> difference;  // between the first run and the next one that differs
};

// Checks the config for all numbers of ranks, trains on each of them, and compares the weights and the optimizer's
// state after each step. Must be called before kernels start threads. Throws Error{config} if there is a single number
// of ranks, or if the weights depend on the number of ranks by the config; the errors of check_config() and of the
// runs.
ScalingComparison compare_scaling(const GivenConfig& given, const RunSpec& spec, const LaunchFlags& launch,
                                  const std::vector<int>& ranks, const ScalingRequest& request, bool quiet);

// Return the table of the runs with the verdict, and a JSON object.
std::string to_text(const ScalingComparison& comparison);
Json to_json(const ScalingComparison& comparison);

// Trains one of these runs in `directory`, in a process that compare_scaling() has started, or as one of its ranks.
// Returns the exit code.
int train_scaled(const GivenConfig& given, const RunSpec& spec, const LaunchFlags& launch,
                 const ScalingRequest& request, const std::string& directory, const Situation& situation);

}  // namespace trainctl
