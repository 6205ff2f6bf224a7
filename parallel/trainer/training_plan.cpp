// Computes steps, limits and rates.
#include "parallel/trainer/training_plan.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/checked.h"
#include "core/exec/interfaces/batch_source.h"
#include "core/optim/optimizer.h"
#include "core/optim/schedule.h"
#include "parallel/strategies/options.h"
#include "parallel/trainer/options.h"

namespace trainctl {
namespace {

// Converts a duration in steps or epochs to a number of steps, at least one.
std::int64_t whole_steps(const Duration& duration, std::int64_t steps_per_epoch) {
  const double steps = steps_of(duration, {.steps_per_epoch = steps_per_epoch});
  return std::llround(std::clamp(steps, 1.0, 1e18));
}

}  // namespace

double scheduled_rate(const TrainOptions& train, const ScheduleTime& time) {
  const double base = train.optimizer.as<OptimizerOptions>().learning_rate;
  return train.rate_factor() * train.schedule.as<ScheduleOptions>().learning_rate(base, time);
}

std::int64_t steps_per_epoch(const TrainOptions& train, const DataInfo& data, int ranks) {
  return train.steps_per_epoch.value_or(divide_up(data.training_samples, train.global_batch(ranks)));
}

std::int64_t steps_of_run(const TrainOptions& train, std::int64_t steps_per_epoch) {
  const std::int64_t steps = saturated_multiply(train.epochs.value_or(0), steps_per_epoch);
  if (!train.max_steps) return steps;
  return steps == 0 ? *train.max_steps : std::min(steps, *train.max_steps);
}

std::string warmup_warning(const TrainOptions& train, const DataInfo& data, int ranks) {
  const std::int64_t per_epoch = steps_per_epoch(train, data, ranks);
  const std::int64_t steps = steps_of_run(train, per_epoch);
  return why_warmup_is_cut(train.schedule.as<ScheduleOptions>(), {.steps_per_epoch = per_epoch, .total_steps = steps});
}

TrainingPlan training_plan(const TrainOptions& train, const StrategyOptions& strategy, const LoopOptions& loop,
                           const DataInfo& data, int ranks, const PhaseStart& start) {
  TrainingPlan plan;
  LoopPlan& steps = plan.loop;
  steps.steps_per_epoch = steps_per_epoch(train, data, ranks);
  steps.phase = start;
  if (train.epochs) {
    const std::int64_t max_phase_steps = std::numeric_limits<std::int64_t>::max() - start.step;
    steps.phase_end = start.step + std::min(saturated_multiply(*train.epochs, steps.steps_per_epoch), max_phase_steps);
  }
  steps.total_steps = steps.phase_end;
  if (train.max_steps) {
    steps.total_steps = steps.total_steps == 0 ? *train.max_steps : std::min(steps.total_steps, *train.max_steps);
  }
  if (train.max_time) steps.max_seconds = train.max_time->value;
  if (loop.checkpoint_every.is_auto()) {
    steps.time_between_failures = loop.time_between_failures;
  } else {
    steps.checkpoint_every = whole_steps(*loop.checkpoint_every.given, steps.steps_per_epoch);
  }
  if (loop.memory_every) steps.memory_every = whole_steps(*loop.memory_every, steps.steps_per_epoch);
  if (strategy.verify_every) plan.verify_every = whole_steps(*strategy.verify_every, steps.steps_per_epoch);
  plan.on_corruption = strategy.on_corruption;
  if (loop.histograms) plan.histograms_every = whole_steps(*loop.histograms, steps.steps_per_epoch);
  if (loop.gradient_norms) plan.gradient_norms_every = whole_steps(*loop.gradient_norms, steps.steps_per_epoch);
  if (loop.log_every.unit != Duration::Unit::seconds)
    plan.log_every = whole_steps(loop.log_every, steps.steps_per_epoch);
  const auto mode_of_result = [&](const std::string& monitor) {
    return mode_of(monitor, loop.given_modes).value_or(MonitorMode::minimum);
  };
  const auto set_mode = [&](auto& options) {
    if (options) options->mode = {options->mode.or_else(mode_of_result(options->monitor.or_else("val_loss")))};
  };
  set_mode(plan.early_stopping = train.early_stopping);
  set_mode(plan.reduce_on_plateau = train.reduce_on_plateau);
  const bool restores = train.early_stopping && train.early_stopping->restore_best;
  const std::string default_monitor = restores ? train.early_stopping->monitor.or_else("val_loss") : "val_loss";
  const std::string monitor = loop.monitor.or_else(restores || data.validation_samples > 0 ? default_monitor : "");
  const Auto<MonitorMode>& mode = restores && loop.mode.is_auto() ? train.early_stopping->mode : loop.mode;
  steps.monitor = {monitor, mode.or_else(mode_of_result(monitor)) == MonitorMode::maximum};
  const std::int64_t scheduled = steps.total_steps > 0 ? steps.total_steps - start.step : 0;
  steps.learning_rate = [&train, start, scheduled, per_epoch = steps.steps_per_epoch](std::int64_t step) {
    return scheduled_rate(train, {step - start.step, per_epoch, scheduled});
  };
  const Mesh mesh = mesh_of(strategy, ranks);
  for (const MeshAxis axis : all_mesh_axes) plan.mesh.push_back(mesh.size(axis));
  if (mesh.data > 1) plan.sync_every = strategy.sync_every.value;
  plan.reproducible = strategy.reproducible.has_value();
  return plan;
}

}  // namespace trainctl
