// Runs the training loop: steps, epochs and the end.
#include "parallel/trainer/loop/loop.h"

#include "core/base/clock.h"
#include "core/base/flight_record.h"
#include "core/exec/interfaces/metrics_sink.h"
#include "parallel/comm/text.h"
#include "parallel/trainer/evaluate.h"
#include "parallel/trainer/hooks/hook.h"
#include "parallel/trainer/loop/checkpoints.h"
#include "parallel/trainer/loop/finite_check.h"
#include "parallel/trainer/loop/step_reports.h"

namespace trainctl {

TrainingLoop::TrainingLoop(LoopContext parts, LoopPlan plan)
    : parts_(std::move(parts)),
      plan_(std::move(plan)),
      interval_(plan_.checkpoint_every, plan_.time_between_failures),
      state_(parts_.results, parts_.training.position()),
      queue_(
          parts_.engine, parts_.training, parts_.program_of, [this](std::int64_t step) { return input_of(step); },
          [this](std::int64_t step) { return parts_.finite.skips(step); }, parts_.profiled,
          parts_.world.attendance().flight()) {}

EndEvent TrainingLoop::run() {
  begin();
  bool completed = at_last_step();
  if (evaluation_is_due()) {  // the run was stopped before or during the evaluation of its last epoch
    completed = evaluate() && completed;
    if (!stop_) {
      state_.epoch_means.clear();
      parts_.checkpoints.set_saved_step(-1);
      save();
    }
  }
  while (!at_last_step() && !stop_ && why_end_.empty()) {
    const std::int64_t before = state_.step;
    run_steps();
    if (rollback_) return {};
    enter(Activity::waiting_for_ranks, "between steps");
    parts_.checkpoints.report();
    const bool trained = state_.step > before;
    if (trained) {
      for (TrainingHook* hook : parts_.hooks) hook->on_pause(state_, before);
    }
    const bool epoch_ends = trained && at_epoch_end();
    // A run that its own time limit has ended is complete; a run that was requested to stop ends immediately.
    const bool was_requested = stop_ && any_rank(parts_.stop_requested(), parts_.world, parts_.stream);
    completed = at_last_step() || (stop_ && !was_requested);
    if (epoch_ends) require_weight();
    const bool evaluated = (epoch_ends || completed) && evaluate();
    if (!evaluated) completed = false;  // its evaluation was stopped
    if (epoch_ends && evaluated) state_.epoch_means.clear();
    completed = completed || !why_end_.empty();
    if (completed) {
      for (TrainingHook* hook : parts_.hooks) hook->on_train_end(state_);
    }
    const bool is_due = trained && interval_.is_due(before, state_.step);
    const bool saves = is_best_ || stop_ || !why_end_.empty() || at_last_step() || (is_due && !puts_off_save());
    const bool is_copied = trained && passed_multiple(before, state_.step, plan_.memory_every);
    if (is_copied) parts_.checkpoints.keep_in_memory(snapshot());
    if (saves) save();
    if (epoch_ends || saves) parts_.reports.restart();
  }
  save();  // even if no step was done, since the resumed checkpoint may be in another run directory
  enter(Activity::saving, "waiting until the checkpoints are written");
  parts_.checkpoints.wait();
  parts_.checkpoints.require_saved();
  return end(completed);
}

// Evaluates at the end of an epoch, or of a run that ends within an epoch. Returns false if the evaluation was stopped;
// a resumed run then begins with the evaluation.
bool TrainingLoop::evaluate() {
  Evaluation validation;
  if (parts_.evaluate) {
    enter(Activity::evaluating, "validation data");
    std::optional<Evaluation> found = parts_.evaluate(state_.step);
    if (!found) {
      stop_ = true;
      return false;
    }
    validation = std::move(*found);
  }
  state_.train = state_.epoch_means.values();
  state_.validation = std::move(validation.values);
  for (TrainingHook* hook : parts_.hooks) hook->on_evaluation(state_);
  is_best_ = state_.update_best(plan_.monitor);
  if (at_epoch_end()) end_epoch();
  const double now = seconds_now();
  if (parts_.sink != nullptr) {
    parts_.sink->epoch({epoch(), state_.step, state_.train, state_.validation, now - epoch_start_,
                        state_.epoch_means.tables(), std::move(validation.tables)});
  }
  epoch_start_ = now;
  return true;
}

void TrainingLoop::end_epoch() {
  left_out_ = 0;
  const double epochs =
      static_cast<double>(state_.step - plan_.phase.step) / static_cast<double>(plan_.steps_per_epoch);
  const double scheduled = plan_.learning_rate(state_.step);
  for (TrainingHook* hook : parts_.hooks) {
    hook->on_epoch_end(state_, epochs, scheduled);
    if (why_end_.empty()) why_end_ = hook->why_end();
  }
}

}  // namespace trainctl
