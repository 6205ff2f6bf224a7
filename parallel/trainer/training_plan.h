// What the trainer does when, from the config and the size of the data.
#pragma once

#include <optional>
#include <string>

#include "core/exec/interfaces/batch_source.h"
#include "core/metrics/monitor.h"
#include "parallel/strategies/options.h"
#include "parallel/trainer/options.h"
#include "parallel/trainer/trainer.h"

namespace trainctl {

// What sections of the config other than `train` and `strategy` say of the step loop.
struct LoopOptions {
  Duration checkpoint_every;
  Duration log_every;  // in seconds: the sink of metrics counts them
  Auto<std::string> monitor;
  Auto<MonitorMode> mode;
  std::optional<Duration> histograms = {};  // in steps or epochs; none: never
};

// The learning rate that the config gives a step.
double scheduled_rate(const TrainOptions& train, const ScheduleTime& time);

// The steps of an epoch on so many ranks.
std::int64_t steps_per_epoch(const TrainOptions& train, const DataInfo& data, int ranks);

// Says that a run, or a phase of one, ends within its warm-up; "" where it does not, or where its length is not known.
std::string warmup_warning(const TrainOptions& train, const DataInfo& data, int ranks);

// Steps, limits, what is watched, and the rate of every step; not the names and facts of a run. `train` outlives it. Of
// a run in phases it is the section of one of them (in_phase()), whose epochs and schedule begin with `start`.
TrainingPlan training_plan(const TrainOptions& train, const StrategyOptions& strategy, const LoopOptions& loop,
                           const DataInfo& data, int ranks, const PhaseStart& start = {});

}  // namespace trainctl
