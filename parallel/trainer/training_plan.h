// What the trainer does when, from the config and the size of the data.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/exec/interfaces/snapshot_metadata.h"
#include "core/metrics/monitor.h"
#include "core/spec/values.h"
#include "parallel/trainer/hooks/patience_options.h"
#include "parallel/trainer/loop/loop_plan.h"

namespace trainctl {

struct DataInfo;
struct ScheduleTime;
struct StrategyOptions;
struct TrainOptions;

// What sections of the config other than `train` and `strategy` say of the step loop.
struct LoopOptions {
  Duration checkpoint_every;
  Duration log_every;  // in seconds: the sink of metrics counts them
  Auto<std::string> monitor;
  Auto<MonitorMode> mode;
  std::optional<Duration> histograms = {};  // in steps or epochs; none: never
};

// What the config makes of the loop and its hooks. All counts are steps; 0 means never.
struct TrainingPlan {
  LoopPlan loop;
  std::int64_t verify_every = 0;
  std::int64_t histograms_every = 0;
  std::int64_t sync_every = 1;  // replicas take so many steps alone (LocalSteps); 1: gradients are summed in every step
  std::int64_t log_every = 10;  // speeds are means since the last multiple
  std::optional<EarlyStoppingOptions> early_stopping;
  std::optional<PlateauOptions> reduce_on_plateau;
  bool reproducible = false;  // batches are cut into logical shards
  std::vector<int> mesh;      // data, pipeline, tensor
  SnapshotMetadata metadata;  // kept with every checkpoint: kernel choices, data fingerprint
};

// The learning rate that the config gives a step.
double scheduled_rate(const TrainOptions& train, const ScheduleTime& time);

// The steps of an epoch on so many ranks.
std::int64_t steps_per_epoch(const TrainOptions& train, const DataInfo& data, int ranks);

// Says that a run, or a phase of one, ends within its warm-up; "" where it does not, or where its length is not known.
std::string warmup_warning(const TrainOptions& train, const DataInfo& data, int ranks);

// Steps, limits, what is watched, and the rate of every step; not the names and metadata of a run. `train` outlives it.
// Of a run in phases it is the section of one of them (in_phase()), whose epochs and schedule begin with `start`.
TrainingPlan training_plan(const TrainOptions& train, const StrategyOptions& strategy, const LoopOptions& loop,
                           const DataInfo& data, int ranks, const PhaseStart& start = {});

}  // namespace trainctl
