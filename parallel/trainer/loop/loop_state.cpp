// The beginning of the training loop, its state, and the event of its end.
#include "parallel/trainer/loop/loop.h"

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/flight_record.h"
#include "core/base/format.h"
#include "core/base/log.h"
#include "core/exec/interfaces/metrics_sink.h"
#include "parallel/trainer/hooks/hook.h"
#include "parallel/trainer/loop/checkpoints.h"
#include "parallel/trainer/loop/finite_check.h"
#include "parallel/trainer/loop/step_reports.h"
#include "parallel/trainer/phases.h"

namespace trainctl {

// Enters what the main thread does between steps in the flight record.
void TrainingLoop::enter(Activity activity, std::string_view text) {
  FlightRecord* const flight = parts_.world.attendance().flight();
  if (flight != nullptr) flight->training().enter({.activity = activity, .step = flight->step(), .text = text});
}

void TrainingLoop::begin() {
  start_seconds_ = epoch_start_ = seconds_now();
  interval_.begin(state_.step, start_seconds_);
  // A resumed run has begun no step yet. After a rollback or another phase, the last step is the one before the next.
  FlightRecord* const flight = parts_.world.attendance().flight();
  if (flight != nullptr && flight->step() >= 0) flight->set_step(state_.step);
  enter(Activity::waiting_for_ranks, "before the first step");
  // On a device that runs asynchronously to the host, the phases of a step are measured by marks. Steps of several
  // ranks have marks anyway; for a single rank marks would only cost time.
  const bool has_peers = parts_.world.size() > 1;  // all ranks measure, since their times are compared
  parts_.engine.set_timing(has_peers || (parts_.sink != nullptr && parts_.engine.steps_at_once() == 1));
  for (TrainingHook* hook : parts_.hooks) hook->on_train_begin(state_);
  if (parts_.finite.policy().action == OnNotFinite::rollback) {  // there is always a checkpoint to go back to
    parts_.checkpoints.set_saved_step(-1);
    save();
    parts_.checkpoints.wait();
  }
  parts_.reports.restart();
}

// Returns the state after the present step, without tensors.
Snapshot TrainingLoop::snapshot() const {
  Snapshot snapshot;
  state_.save(snapshot);
  if (plan_.phases > 1) {
    const std::size_t next = plan_.phase.number + 1;
    const bool follows = ended_phase() && next < plan_.phases;
    snapshot.metadata[phase_key] = to_text(follows ? PhaseStart{next, state_.step} : plan_.phase);
  }
  parts_.finite.save(snapshot.metadata);
  for (const TrainingHook* hook : parts_.hooks) hook->save(snapshot.metadata);
  return snapshot;
}

void TrainingLoop::save() {
  enter(Activity::saving, "copying the weights for a checkpoint");
  parts_.checkpoints.save(snapshot());
  const std::string interval =
      interval_.note_save(state_.step, seconds_now(), parts_.checkpoints.cost(), parts_.world, parts_.stream);
  if (!interval.empty() && parts_.sink != nullptr) log::info(interval);
}

// Whether the save that is due comes later, since the last checkpoint takes longer to write than was known.
bool TrainingLoop::puts_off_save() {
  return interval_.puts_off(state_.step, seconds_now(), parts_.checkpoints.cost(), parts_.world, parts_.stream);
}

void TrainingLoop::resume(const Snapshot& snapshot, bool is_stored) {
  state_.restore(snapshot, plan_.monitor);
  if (is_stored) parts_.checkpoints.set_saved_step(snapshot.step);
  parts_.finite.restore(snapshot.metadata);
  const bool begins_phase = plan_.phase.number > 0 && snapshot.step == plan_.phase.step;
  if (begins_phase) {
    parts_.finite.begin_state();
    return;
  }
  for (TrainingHook* hook : parts_.hooks) hook->restore(snapshot.metadata);
}

bool TrainingLoop::ended_phase() const {
  const bool last = plan_.phase_end > 0 && state_.step >= plan_.phase_end;
  return (last || !why_end_.empty()) && !evaluation_is_due();
}

// Checks at the end of an epoch that its samples have weight, unless steps were left out, which may have been all.
void TrainingLoop::require_weight() const {
  if (state_.epoch_means.weight() != 0 || left_out_ > 0) return;
  throw Error(
      ErrorKind::data,
      format("no sample of epoch {:.6g} weighs more than 0, so that the network cannot learn from them", epoch()),
      "check the weights and masks of the data, train.class_weights, and samples that were skipped; with "
      "`ignore_index` in the loss, whether all targets are that number");
}

EndEvent TrainingLoop::end(bool completed) const {
  EndEvent end;
  end.status = completed ? "completed" : "stopped";
  if (completed && !at_last_step()) end.reason = why_end_.empty() ? "train.max_time has passed" : why_end_;
  end.step = state_.step;
  end.epoch = epoch();
  if (state_.best) {
    end.best_monitor = state_.best->monitor;
    end.best_value = state_.best->value;
    end.best_step = state_.best->step;
  }
  end.seconds = seconds_now() - start_seconds_;
  end.train = state_.train;
  end.validation = state_.validation;
  end.weights_sha256 = parts_.weights_sha256();
  return end;
}

}  // namespace trainctl
