// Training on one rank: from a config to a finished run directory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/document.h"
#include "io/metrics/progress.h"

namespace trainctl {

struct RankContext;
struct RunSpec;
struct ScalingRequest;

struct TrainingRequest {
  Node config;                  // resolved: what the run directory keeps
  std::string config_file;      // where it was read from
  std::string run_directory;    // --run-dir; empty: runs/<name>
  std::string resume = "auto";  // auto, never, or the path of a checkpoint
  ProgressStyle progress = ProgressStyle::automatic;
  SupervisedTerminal terminal;  // of a supervised rank: see Situation
  bool quiet = false;
  bool json = false;               // the end event goes to stdout
  std::int64_t profile_first = 0;  // steps [first, end), from 0, go into timeline.json
  std::int64_t profile_end = 0;
  const ScalingRequest* scaling = nullptr;  // a run of verify-scaling
};

// Returns the exit code: 0 when the run is complete, 75 when it was stopped on request. Collective; throws as the parts
// do.
int train(const RunSpec& spec, const TrainingRequest& request, RankContext& context);

}  // namespace trainctl
