// What the trainer does when, from the config and the size of the data.
#pragma once

#include "cmd/run_spec.h"
#include "core/exec/interfaces/batch_source.h"
#include "parallel/trainer/trainer.h"

namespace trainctl {

// The learning rate that the config gives a step.
double scheduled_rate(const RunSpec& spec, const ScheduleTime& time);

// Steps, limits, what is watched, and the rate of every step; not the names and facts of a run. `spec` outlives it.
TrainingPlan training_plan(const RunSpec& spec, const DataInfo& data, int ranks);

}  // namespace trainctl
