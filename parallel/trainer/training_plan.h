// Computes the trainer's intervals, limits and learning rates from the config and the size of the data.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/exec/interfaces/snapshot_metadata.h"
#include "core/metrics/monitor.h"
#include "core/spec/values.h"
#include "parallel/strategies/options.h"
#include "parallel/trainer/hooks/patience_options.h"
#include "parallel/trainer/loop/loop_plan.h"

namespace trainctl {

struct DataInfo;
struct ScheduleTime;
struct TrainOptions;

// Settings of the training loop from sections of the config other than `train` and `strategy`.
struct LoopOptions {
  Auto<Duration> checkpoint_every;
  double time_between_failures = 0;  // of the whole run, in seconds; used if checkpoint_every is auto
  Duration log_every;                // an interval in seconds is measured by the metrics sink
  Auto<std::string> monitor;
  Auto<MonitorMode> mode;
  // Intervals in steps or epochs; empty: never.
  std::optional<Duration> memory_every = {};
  std::optional<Duration> histograms = {};
  std::optional<Duration> gradient_norms = {};
  GivenModes given_modes = {};
};

// The settings of the loop and its hooks. All counts are steps; 0 means never.
struct TrainingPlan {
  LoopPlan loop;
  std::int64_t verify_every = 0;
  OnCorruption on_corruption = {};
  std::int64_t histograms_every = 0;
  std::int64_t gradient_norms_every = 0;
  std::int64_t sync_every = 1;  // number of steps between averages of replicas (LocalSteps); 1: no local steps
  std::int64_t log_every = 10;  // interval of the log; speeds are means since the interval began
  std::optional<EarlyStoppingOptions> early_stopping;
  std::optional<PlateauOptions> reduce_on_plateau;
  bool reproducible = false;  // whether batches are divided into logical shards
  std::vector<int> mesh;      // sizes of the axes data, pipeline, tensor
  SnapshotMetadata metadata;  // stored in every checkpoint: kernel choices, data fingerprint
};

// Returns the learning rate of the config at a time.
double scheduled_rate(const TrainOptions& train, const ScheduleTime& time);

// Returns the number of steps of an epoch on `ranks` ranks.
std::int64_t steps_per_epoch(const TrainOptions& train, const DataInfo& data, int ranks);

// Returns the number of steps of a run with all its phases that nothing ends earlier; 0 if only time or a metric ends
// it. `steps_per_epoch`: 0 if it is unknown, so that only `train.max_steps` counts.
std::int64_t steps_of_run(const TrainOptions& train, std::int64_t steps_per_epoch);

// Returns a warning if the run or one of its phases ends during the warm-up of its learning rate; "" if not, or if its
// length is unknown.
std::string warmup_warning(const TrainOptions& train, const DataInfo& data, int ranks);

// Computes steps, limits, the monitor and the rate of every step; names and metadata of the run are not set. `train`
// must outlive the plan. For a run with phases, it is the section of one phase (in_phase()), whose epochs and schedule
// begin at `start`.
TrainingPlan training_plan(const TrainOptions& train, const StrategyOptions& strategy, const LoopOptions& loop,
                           const DataInfo& data, int ranks, const PhaseStart& start = {});

}  // namespace trainctl
