// Starts the runs of verify-scaling, in temporary directories and as `trainctl run --ranks N` starts its ranks, and
// finds the first difference between two of them: its step, op, tensor and size.
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
  std::map<std::int64_t, StepHashes> steps;  // key: steps done; only steps after which ranks have equal weights
  std::string directory;                     // exists as long as the ScalingRuns
};

// Returns the first step of both runs after which their hashes differ; empty if all are equal.
std::optional<std::int64_t> first_difference(const ScaledRun& a, const ScaledRun& b);

// The options with which the command starts itself, hidden from its users.
inline constexpr const char* scaling_directory_option = "--scaled-run";
inline constexpr const char* scaling_trace_option = "--trace-last";
inline constexpr const char* scaling_values_option = "--trace-values";

class ScalingRuns {
 public:
  // `common`: the user's config and its settings.
  explicit ScalingRuns(const CommonOptions& common);

  // Runs the config on `ranks` ranks. If the run fails, throws an Error with its message and the kind of its exit code.
  ScaledRun run(int ranks, const ScalingRequest& request);

 private:
  Signals signals_;  // once constructed, a request to stop ends the run in progress
  ScratchFolder scratch_;
  const CommonOptions& common_;
  int count_ = 0;
};

struct ScalingDifference {
  int ranks = 1, other_ranks = 1;
  std::int64_t step = 0;              // number of the step, from 1
  std::string phase;                  // forward, backward, reduction or update; "" if it was not found
  std::string op, tensor;             // the tensor, and the op that wrote it
  std::vector<std::int64_t> samples;  // indices of the samples that differ; empty if the tensor has no samples
  std::size_t compared = 0;           // number of samples that were compared
  Difference difference;
  std::string note;  // further explanation

  std::string text() const;
};

Json to_json(const ScalingDifference& difference);

// Repeats both runs up to the step after which they differ, traces that step, and looks for the first tensor that
// differs: among the tensors that ops wrote for the same samples, then among the reduced gradients, then among the
// weights and the optimizer's state.
ScalingDifference find_difference(ScalingRuns& runs, const ScaledRun& a, const ScaledRun& b, std::int64_t step);

}  // namespace trainctl
