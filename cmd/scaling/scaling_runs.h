// The runs of verify-scaling: real ones, each started as `trainctl run --ranks N` starts its ranks, in directories that
// go away.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "cmd/subcommand.h"
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

}  // namespace trainctl
