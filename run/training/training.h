// Trains a config on one rank, up to a finished run directory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/document.h"
#include "io/metrics/progress.h"
#include "io/metrics/run_lock.h"
#include "parallel/launch/restart.h"

namespace trainctl {

struct RankContext;
struct RunSpec;
struct ReplayRequest;
struct ScalingRequest;

struct TrainingRequest {
  Node config;                  // resolved, as the run directory keeps it
  std::string config_file;      // the path that it was read from
  std::string run_directory;    // --run-dir; empty: runs/<name>
  std::string resume = "auto";  // auto, never, or the path of a checkpoint
  ProgressStyle progress = ProgressStyle::automatic;
  std::optional<Restart> restart;  // why the supervisor has started the ranks again
  Generation generation;           // the start of the ranks
  SupervisedTerminal terminal;     // terminal of a supervised rank: see Situation
  bool quiet = false;
  bool json = false;               // the end event is printed to stdout
  std::int64_t profile_first = 0;  // steps [first, end), counted from 0, are written to timeline.json
  std::int64_t profile_end = 0;
  const ScalingRequest* scaling = nullptr;  // set in a run of verify-scaling
  const ReplayRequest* replay = nullptr;    // set in a run of replay
};

// Trains a run. Returns the exit code: 0 when the run is complete, 75 when it was stopped on request. Throws Error if
// training fails. Collective.
int train(const RunSpec& configured, const TrainingRequest& request, RankContext& context);

}  // namespace trainctl
