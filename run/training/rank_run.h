// A run as one rank has it: what its phases share, and how it begins.
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
  RunSpec spec;          // of all phases, with the batch of all ranks together, and the strategy that `auto` stood for
  const RunSpec& given;  // as the config has it
  const TrainingRequest& request;
  RankContext& context;
  RankDevice& device;
  RunFiles& files;
  const Data& data;
  Node config;                           // what the run directory keeps
  double begin = 0;                      // when the first of these phases began
  std::optional<StopRequest> stop = {};  // from when on there is something to save
  bool shares_directory = false;         // this rank can write to the run directory
  std::unique_ptr<GpuWatch> gpus = {};
};

// Where the data begins, or goes on from a checkpoint.
DataPosition start_of(const RankRun& run, const std::optional<Snapshot>& resumed);

// Makes the run directory this run's, warns of what its data and network suggest, and tells the sink of the start. A
// run whose directory has no room for a checkpoint does not begin: throws Error{resource}. `train` and `plan` are of
// the phase that the run begins or goes on with. Collective.
void begin_run(RankRun& run, Job& job, const TrainOptions& train, const TrainingPlan& plan, const MemoryPlan& memory,
               const std::optional<Snapshot>& resumed);

}  // namespace trainctl
