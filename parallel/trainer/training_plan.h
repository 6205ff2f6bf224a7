// What the trainer does when, from the config and the size of the data.
#pragma once

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
};

// The learning rate that the config gives a step.
double scheduled_rate(const TrainOptions& train, const ScheduleTime& time);

// Steps, limits, what is watched, and the rate of every step; not the names and facts of a run. `train` outlives it.
TrainingPlan training_plan(const TrainOptions& train, const StrategyOptions& strategy, const LoopOptions& loop,
                           const DataInfo& data, int ranks);

}  // namespace trainctl
