// Reacts to steps whose loss or gradient is not finite.
#include <algorithm>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/log.h"
#include "core/base/table.h"
#include "core/exec/interfaces/metrics_sink.h"
#include "parallel/trainer/loop/checkpoints.h"
#include "parallel/trainer/loop/finite_check.h"
#include "parallel/trainer/loop/loop.h"

namespace trainctl {

// The device has left the update out on all ranks, which all have the same result and so decide the same.
void TrainingLoop::not_finite(const StartedStep& step, const std::string& cause) {
  const OnNotFinite action = parts_.finite.action_at(state_.step);
  if (action == OnNotFinite::stop) diverged(step, cause);
  const bool values_are_finite = !parts_.values_are_finite || parts_.values_are_finite();
  if (action == OnNotFinite::skip) {
    skip_update(step, cause, values_are_finite);
  } else {
    roll_back(step, cause, values_are_finite);
  }
}

void TrainingLoop::skip_update(const StartedStep& step, const std::string& cause, bool values_are_finite) {
  SkippedBatches& skipped = parts_.finite.skipped();
  if (!values_are_finite) {
    diverged(step, cause, "; the parameters are not finite either, so that it does not help to skip steps");
  }
  const std::int64_t most = parts_.finite.policy().max_skipped;
  if (skipped.in_a_row() >= most) {
    diverged(step, cause,
             format("; the updates of {} before it were skipped, too, as many as train.max_skipped allows",
                    counted(most, "step")));
  }
  skipped.count_left_out();
  const std::int64_t number = state_.step + 1;
  if (parts_.sink != nullptr) {
    log::warning(format("step {} (epoch {:.2f}) does not change the weights: {}; {} of at most {} such steps in a row",
                        number, epoch(), cause, skipped.in_a_row(), most));
    parts_.sink->not_finite(
        {.step = number, .epoch = epoch(), .action = "skip", .cause = cause, .count = skipped.in_a_row()});
  }
  ++left_out_;
  pass(step);
}

// If the parameters are not finite, the update of the step before has made them so, and its batch is skipped.
void TrainingLoop::roll_back(const StartedStep& step, const std::string& cause, bool values_are_finite) {
  parts_.checkpoints.wait();
  SkippedBatches skipped = parts_.finite.skipped();
  const std::int64_t batch = values_are_finite ? state_.step : skipped.last_computed_before(state_.step);
  const std::int64_t most = parts_.finite.policy().max_skipped;
  // The newest checkpoint may have the same parameters.
  const std::int64_t since = values_are_finite ? parts_.checkpoints.saved_step() : 0;
  if (batch < 0) diverged(step, cause, "; the initial parameters are not finite either");
  if (skipped.count_from(since) >= most) {
    diverged(step, cause,
             format("; batches skipped since the last checkpoint: {}, as many as train.max_skipped allows", most));
  }
  queue_.drain();
  skipped.add(batch);
  rollback_ = Rollback{state_.step, epoch(), batch, cause, std::move(skipped)};
}

void TrainingLoop::diverged(const StartedStep& step, const std::string& cause, const std::string& detail) {
  const StepQueue::Drained later = queue_.drain();
  const std::int64_t number = state_.step + 1;
  std::string replay;
  if (parts_.keep_not_finite) {
    replay = parts_.keep_not_finite(snapshot(), {number, state_.data, step.samples, cause, !later.changed});
  }
  if (parts_.sink != nullptr) {
    parts_.sink->not_finite({.step = number, .epoch = epoch(), .action = "stop", .cause = cause, .count = 1});
  }
  const std::string tensor = parts_.find_not_finite ? parts_.find_not_finite(step.program, later.steps) : "";
  parts_.checkpoints.wait();
  const std::int64_t saved = parts_.checkpoints.saved_step();
  throw CollectiveError(
      ErrorKind::diverged,
      format("training diverged at step {} (epoch {:.2f}): {}{}", number, epoch(),
             tensor.empty() ? cause : "the first tensor that is not finite is " + tensor, detail),
      format("lower the learning rate, add warmup or clip_norm, or look at the data{}{}",
             saved < 0 ? "" : format("; the last checkpoint is of step {}, before the divergence", saved), replay));
}

}  // namespace trainctl
