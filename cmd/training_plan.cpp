// Steps, limits and rates.
#include "cmd/training_plan.h"

#include <algorithm>
#include <cmath>

#include "core/base/checked.h"
#include "core/metrics/monitor.h"

namespace trainctl {
namespace {

// A duration in steps; 0 where it is none.
std::int64_t steps_of(const Duration& duration, std::int64_t steps_per_epoch) {
  const double steps = duration.unit == Duration::Unit::epochs ? duration.amount * static_cast<double>(steps_per_epoch)
                                                               : duration.amount;
  return std::llround(std::clamp(steps, 1.0, 1e18));
}

}  // namespace

double scheduled_rate(const RunSpec& spec, const ScheduleTime& time) {
  const double base = spec.train.optimizer.as<OptimizerOptions>().learning_rate;
  return spec.train.schedule.as<ScheduleOptions>().learning_rate(base, time);
}

TrainingPlan training_plan(const RunSpec& spec, const DataInfo& data, int ranks) {
  const std::int64_t batch = spec.train.global_batch(ranks);
  TrainingPlan plan;
  plan.steps_per_epoch = spec.train.steps_per_epoch.value_or(divide_up(data.training_samples, batch));
  plan.total_steps = saturated_multiply(spec.train.epochs.value_or(0), plan.steps_per_epoch);
  if (spec.train.max_steps) {
    plan.total_steps =
        plan.total_steps == 0 ? *spec.train.max_steps : std::min(plan.total_steps, *spec.train.max_steps);
  }
  if (spec.train.max_time) plan.max_seconds = spec.train.max_time->value;
  plan.checkpoint_every = steps_of(spec.checkpoint.every, plan.steps_per_epoch);
  if (spec.strategy.verify_every) plan.verify_every = steps_of(*spec.strategy.verify_every, plan.steps_per_epoch);
  if (spec.log.every.unit != Duration::Unit::seconds) plan.log_every = steps_of(spec.log.every, plan.steps_per_epoch);
  plan.monitor = spec.checkpoint.monitor.or_else(data.validation_samples > 0 ? "val_loss" : "");
  plan.monitor_maximum = spec.checkpoint.mode.or_else(mode_of(plan.monitor)) == MonitorMode::maximum;
  plan.learning_rate = [&spec, per_epoch = plan.steps_per_epoch, total = plan.total_steps](std::int64_t step) {
    return scheduled_rate(spec, {step, per_epoch, total});
  };
  plan.mesh = {ranks, 1, 1};
  return plan;
}

}  // namespace trainctl
