// Starts and finishes steps.
#include "parallel/trainer/loop/step_queue.h"

#include <cmath>

#include "core/base/clock.h"
#include "core/base/flight_record.h"
#include "core/exec/observe/op_recorder.h"

namespace trainctl {
namespace {

// The position after a batch. That of the source does not change with a batch that is not complete, which some ranks
// may have when a stop was requested.
DataPosition position_after(const Batch& batch) {
  const DataPosition& first = batch.position;
  if (batch.last_of_epoch) return {first.seed, first.epoch + 1, 0};
  return {first.seed, first.epoch, first.offset + batch.global_count};
}

}  // namespace

void StepQueue::start(std::int64_t next, std::int64_t end) {
  if (profiled_.recorder != nullptr) engine_.set_observer(profiled_.contains(next) ? profiled_.recorder : nullptr);
  for (;;) {
    const std::int64_t number = next + static_cast<std::int64_t>(started_.size());
    const bool is_full = static_cast<int>(started_.size()) >= engine_.steps_at_once();
    const bool changes_observer = !started_.empty() && profiled_.contains(number) != profiled_.contains(next);
    if (is_full || number >= end || changes_observer) return;
    start_one(number);
  }
}

void StepQueue::start_one(std::int64_t number) {
  StartedStep step;
  step.start_seconds = seconds_now();
  if (flight_ != nullptr) {
    flight_->set_step(number + 1);
    flight_->training().enter({.activity = Activity::waiting_for_data, .step = number + 1});
  }
  const Batch& batch = batches_.next();
  step.program = program_of_(batch.global_count);
  step.input = input_of_(number);
  step.input.abandons = !batch.complete;
  step.data = batches_.position();
  step.samples = batch.global_count;
  step.waited_seconds = batch.waited_seconds;
  step.skipped = skips_(number);
  if (step.skipped) {
    step.data = position_after(batch);
  } else {
    engine_.start(step.program, batch, step.input);
  }
  started_.push_back(step);
}

StartedStep StepQueue::finish(std::int64_t number, StepResult& result) {
  const StartedStep step = started_.front();
  if (!step.skipped) engine_.finish(result);
  started_.pop_front();
  if (profiled_.contains(number)) {
    profiled_.recorder->mark({"step", step.start_seconds, seconds_now()});
    profiled_.recorder->mark({"wait for data", step.start_seconds, step.start_seconds + step.waited_seconds});
  }
  return step;
}

StepQueue::Drained StepQueue::drain() {
  Drained drained;
  for (StepResult result; !started_.empty(); started_.pop_front()) {
    if (started_.front().skipped) continue;
    engine_.finish(result);
    ++drained.steps;
    drained.changed =
        drained.changed || !(result.not_finite || result.abandoned || !std::isfinite(result.gradient_norm));
  }
  return drained;
}

}  // namespace trainctl
