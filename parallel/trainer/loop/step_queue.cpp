// Starts and finishes steps.
#include "parallel/trainer/loop/step_queue.h"

#include "core/base/clock.h"
#include "core/base/flight_record.h"
#include "core/exec/observe/op_recorder.h"

namespace trainctl {

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
  engine_.start(step.program, batch, step.input);
  started_.push_back(step);
}

StartedStep StepQueue::finish(std::int64_t number, StepResult& result) {
  engine_.finish(result);
  const StartedStep step = started_.front();
  started_.pop_front();
  if (profiled_.contains(number)) {
    profiled_.recorder->mark({"step", step.start_seconds, seconds_now()});
    profiled_.recorder->mark({"wait for data", step.start_seconds, step.start_seconds + step.waited_seconds});
  }
  return step;
}

int StepQueue::drain() {
  int drained = 0;
  for (StepResult dropped; !started_.empty(); started_.pop_front(), ++drained) engine_.finish(dropped);
  return drained;
}

}  // namespace trainctl
