// The state of a run on one rank that its phases share, and the beginning of the run.
#pragma once

#include <memory>
#include <optional>

#include "parallel/health/gpus.h"
#include "parallel/launch/ranks/stop.h"
#include "run/run_spec.h"

namespace trainctl {

class Data;
class Job;
struct DataPosition;
struct MemoryPlan;
struct RankContext;
struct RankDevice;
struct RunFiles;
struct Snapshot;
struct TrainOptions;
struct TrainingPlan;
struct TrainingRequest;

struct RankRun {
  RunSpec spec;               // config of all phases, with the batch of all ranks and the strategy that `auto` chose
  const RunSpec& configured;  // unchanged config
  const TrainingRequest& request;
  RankContext& context;
  RankDevice& device;
  RunFiles& files;
  const Data& data;
  Node config;                           // the config that is written to the run directory
  double begin = 0;                      // when the first of these phases began, by seconds_now()
  std::optional<StopRequest> stop = {};  // set once there is something to save
  bool shares_directory = false;         // this rank can write to the run directory
  std::optional<int> peer = {};          // the rank that keeps copies in the memory of a second host
  std::unique_ptr<GpuWatch> gpus = {};
};

// The position at which the data begins or, from a checkpoint, continues.
DataPosition start_of(const RankRun& run, const std::optional<Snapshot>& resumed);

// Claims the run directory for this run, logs the warnings about its data and network, and reports the start to the
// sink. Throws Error{resource} if the directory has no space for a checkpoint. `train` and `plan`: of the phase with
// which the run begins or continues. Collective.
void begin_run(RankRun& run, Job& job, const TrainOptions& train, const TrainingPlan& plan, const MemoryPlan& memory,
               const std::optional<Snapshot>& resumed);

}  // namespace trainctl
