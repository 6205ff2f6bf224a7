// The runs of verify-scaling: real ones, each started as `trainctl run --ranks N` starts its ranks, in directories that
// go away; and where two of them differ first: step, op, tensor, and by how much.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cmd/common_options.h"
#include "core/base/json_fwd.h"
#include "core/tensor/difference.h"
#include "parallel/launch/host/scratch.h"
#include "parallel/launch/supervisor/signals.h"
#include "run/training/scaling_watch.h"

namespace trainctl {

struct StepHashes {
  std::string weights, state;  // SHA-256 of the weights, and of the optimizer's state

  bool operator==(const StepHashes&) const = default;
};

struct ScaledRun {
  int ranks = 1;
  std::map<std::int64_t, StepHashes> steps;  // by steps done, where the ranks have equal weights
  std::string directory;                     // as long as the ScalingRuns live
};

// The first step behind which two runs differ, of those that both have; nothing where they agree.
std::optional<std::int64_t> first_difference(const ScaledRun& a, const ScaledRun& b);

// The options with which the command starts itself; hidden from its users.
inline constexpr const char* scaling_directory_option = "--scaled-run";
inline constexpr const char* scaling_trace_option = "--trace-last";
inline constexpr const char* scaling_values_option = "--trace-values";

class ScalingRuns {
 public:
  // `common`: the config as the user names it, and its settings.
  explicit ScalingRuns(const CommonOptions& common);

  // Runs the config on so many ranks. Throws what the run reports, under its exit code.
  ScaledRun run(int ranks, const ScalingRequest& request);

 private:
  Signals signals_;  // from here on a request to stop ends the run that is under way
  ScratchFolder scratch_;
  const CommonOptions& common_;
  int count_ = 0;
};

struct ScalingDifference {
  int ranks = 1, other_ranks = 1;
  std::int64_t step = 0;              // from 1
  std::string phase;                  // forward, backward, reduction or update; "" where it was not found
  std::string op, tensor;             // the tensor, and what wrote it
  std::vector<std::int64_t> samples;  // of the data set, whose values differ; empty where the tensor is none of samples
  std::size_t compared = 0;           // samples that were compared
  Difference difference;
  std::string note;  // what more there is to say

  std::string text() const;
};

Json to_json(const ScalingDifference& difference);

// Repeats both runs up to the step behind which they differ, traces that step, and looks for the first tensor that
// differs: what ops wrote for the same samples, then reduced gradients, then weights and the optimizer's state.
ScalingDifference find_difference(ScalingRuns& runs, const ScaledRun& a, const ScaledRun& b, std::int64_t step);

}  // namespace trainctl
