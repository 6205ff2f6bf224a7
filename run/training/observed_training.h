// Trains a run for a command that observes its steps: replay and verify-scaling.
#pragma once

#include <string>

#include "parallel/comm/same_on_all.h"

namespace trainctl {

struct GivenConfig;
struct LaunchFlags;
struct RunSpec;
struct Situation;
struct TrainingRequest;

// Starts the ranks of the command, or trains as one of them; returns the exit code. Shows no progress. `training` has
// the run directory, the checkpoint to resume from and what is observed; its other members are set here. `values`: the
// options of the command that must be equal on all ranks, see rank_command().
int train_observed(const std::string& command, const RankValues& values, const GivenConfig& given, const RunSpec& spec,
                   const LaunchFlags& launch, TrainingRequest training, const Situation& situation);

}  // namespace trainctl
