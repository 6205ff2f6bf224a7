// Repeats a step of a run, bit for bit in reproducible mode, and tells what it computed.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/json_fwd.h"
#include "run/training/replay_watch.h"

namespace trainctl {

struct GivenConfig;
struct LaunchFlags;
struct RunSpec;
struct Situation;

// The options with which the command starts itself, hidden from its users.
inline constexpr const char* replay_directory_option = "--replay-directory";
inline constexpr const char* replay_from_option = "--replay-from";

// Changes a run to one on `ranks` ranks of this host: the network is divided as before if the ranks allow it.
RunSpec replayed(RunSpec spec, int ranks);

// Starts a process that trains the run on `ranks` ranks up to the step (train_to_step()), from the newest whole
// checkpoint before it. Writes its errors to standard error, and returns its exit code. If that is 0, `found` has what
// the step computed: the fields that ReplayWatch prints, run, ranks, from (null: from the beginning) and recorded
// (null: the step of the run was finite). Throws Error{config} if the run has fewer steps.
int replay_step(const GivenConfig& given, const LaunchFlags& launch, const std::string& run, std::int64_t step,
                int ranks, Json& found);
// What the step computed, as text.
std::string replay_text(const Json& found);

// The training up to the step.
struct ReplayTraining {
  ReplayRequest request;
  std::string directory;       // directory of the repeated run; empty: the user has started this process
  std::string from = "never";  // checkpoint from which it trains; never: from the beginning
};

// Trains up to the step, in a process that replay_step() has started, or as one of its ranks. Returns the exit code.
int train_to_step(const GivenConfig& given, const RunSpec& spec, const LaunchFlags& launch,
                  const ReplayTraining& replay, const Situation& situation);

}  // namespace trainctl
