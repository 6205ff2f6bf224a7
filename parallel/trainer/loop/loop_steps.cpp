// Runs the steps of the training loop: provides their inputs and processes their results.
#include "parallel/trainer/loop/loop.h"

#include <algorithm>

#include "core/backend/communicator.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/flight_record.h"
#include "core/base/format.h"
#include "parallel/trainer/hooks/hook.h"
#include "parallel/trainer/loop/checkpoints.h"
#include "parallel/trainer/loop/finite_check.h"
#include "parallel/trainer/loop/step_reports.h"

namespace trainctl {

// Runs steps until all ranks know the results: one step, unless replicas take steps independently.
void TrainingLoop::run_steps() {
  const double begin = seconds_now();
  do {
    queue_.start(state_.step, next_pause());
    finish_step();
    while (stop_ && !queue_.empty()) finish_step();
  } while (!stop_ && !combined_);
  parts_.checkpoints.note_stop_time(seconds_now() - begin);
}

void TrainingLoop::finish_step() {
  const StartedStep step = queue_.finish(state_.step, result_);
  if (step.skipped) {
    if (stop_) return;  // the step before it was left undone, and both are done when the run is resumed
    combined_ = true;
    ++left_out_;
    return pass(step);
  }
  state_.program = step.program;
  state_.gradient_scale = result_.count > 0 ? 1 / (result_.count * step.input.loss_scale) : 0;
  enter(Activity::computing, "the result of the step and the finite check");
  combined_ = true;
  for (TrainingHook* hook : parts_.hooks) combined_ = hook->combine(state_.step + 1, result_) && combined_;
  if (combined_) {
    stop_ = stop_ || result_.stop;
    if (result_.abandoned) return;
    const std::string cause = parts_.finite.why_diverged(step, result_);
    if (!cause.empty()) return not_finite(step, cause);
    parts_.finite.skipped().count_finite();
  }
  pass(step);
  parts_.reports.add(step, parts_.engine.phases());
  if (!combined_) return;
  state_.epoch_means.add(result_.sums, result_.count);
  for (TrainingHook* hook : parts_.hooks) hook->on_step_end(state_, step_loss());
  parts_.reports.report({.step = state_.step,
                         .epoch = epoch(),
                         .loss = step_loss(),
                         .learning_rate = step.input.learning_rate,
                         .gradient_norm = result_.gradient_norm});
}

// Goes on after a step, whether or not it has changed the weights.
void TrainingLoop::pass(const StartedStep& step) {
  ++state_.step;
  state_.data = step.data;
  is_best_ = false;
}

// Rank 0's clock decides for all ranks, which agree on a stop within the step.
StepEngine::StepInput TrainingLoop::input_of(std::int64_t step) const {
  const bool is_late =
      plan_.max_seconds > 0 && parts_.world.rank() == 0 && seconds_now() - start_seconds_ >= plan_.max_seconds;
  double rate = plan_.learning_rate(step);
  for (const TrainingHook* hook : parts_.hooks) rate = hook->learning_rate(rate);
  return {.learning_rate = rate,
          .step = step - plan_.phase.step,
          .stop = is_late || parts_.stop_requested(),
          .loss_scale = parts_.finite.loss_scale(),
          .left_out = parts_.finite.left_out()};
}

// Returns the next step count at which no later step may have begun. No step may begin after an agreed stop.
std::int64_t TrainingLoop::next_pause() const {
  std::int64_t next = std::min({next_multiple(state_.step, plan_.steps_per_epoch), interval_.next(state_.step),
                                next_multiple(state_.step, plan_.memory_every)});
  if (plan_.total_steps > 0) next = std::min(next, plan_.total_steps);
  if (parts_.finite.is_in_doubt()) next = state_.step + 1;
  for (const TrainingHook* hook : parts_.hooks) next = std::min(next, hook->next_pause(state_.step));
  return next;
}

// Returns the mean loss over the samples of the last finished step, or of the steps that were combined with it.
double TrainingLoop::step_loss() const {
  return parts_.results[0].of(result_.sums, result_.count > 0 ? result_.count : 1.0);
}

}  // namespace trainctl
