// Starts the runs of verify-scaling, in temporary directories and as `trainctl run --ranks N` starts its ranks.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "parallel/launch/host/scratch.h"
#include "parallel/launch/supervisor/signals.h"
#include "run/training/scaling_watch.h"

namespace trainctl {

struct GivenConfig;

struct StepHashes {
  std::string weights, state;  // SHA-256 of the weights, and of the optimizer's state

  bool operator==(const StepHashes&) const = default;
};

struct ScaledRun {
  int ranks = 1;
  std::map<std::int64_t, StepHashes> steps;  // key: steps done; only steps after which ranks have equal weights
  std::string directory;                     // exists as long as the ScalingRuns
};

// Returns "1 rank" or "2 ranks".
std::string ranks_text(int ranks);

// Returns the first step of both runs after which their hashes differ; empty if all are equal.
std::optional<std::int64_t> first_difference(const ScaledRun& a, const ScaledRun& b);

// The options with which the command starts itself, hidden from its users.
inline constexpr const char* scaling_directory_option = "--scaled-run";
inline constexpr const char* scaling_trace_option = "--trace-last";
inline constexpr const char* scaling_values_option = "--trace-values";

class ScalingRuns {
 public:
  // `given`: the user's config, which must outlive the object. `quiet`: shows no progress.
  ScalingRuns(const GivenConfig& given, bool quiet);

  // Runs the config on `ranks` ranks. If the run fails, throws an Error with its message and the kind of its exit code.
  ScaledRun run(int ranks, const ScalingRequest& request);

 private:
  Signals signals_;  // once constructed, a request to stop ends the run in progress
  ScratchFolder scratch_;
  const GivenConfig& given_;
  bool quiet_;
  int count_ = 0;
};

}  // namespace trainctl
