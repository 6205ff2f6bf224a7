// Saves and restores the state of the training loop, and creates the event of its end.
#include "parallel/trainer/loop/loop.h"

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/flight_record.h"
#include "core/base/format.h"
#include "core/exec/interfaces/metrics_sink.h"
#include "parallel/trainer/hooks/hook.h"
#include "parallel/trainer/loop/checkpoints.h"
#include "parallel/trainer/loop/finite_check.h"
#include "parallel/trainer/phases.h"

namespace trainctl {

void TrainingLoop::save() {
  enter(Activity::saving, "copying the weights for a checkpoint");
  Snapshot snapshot;
  state_.save(snapshot);
  if (plan_.phases > 1) {
    const std::size_t next = plan_.phase.number + 1;
    const bool follows = ended_phase() && next < plan_.phases;
    snapshot.metadata[phase_key] = to_text(follows ? PhaseStart{next, state_.step} : plan_.phase);
  }
  parts_.finite.save(snapshot.metadata);
  for (const TrainingHook* hook : parts_.hooks) hook->save(snapshot.metadata);
  parts_.checkpoints.save(std::move(snapshot));
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

// Checks at the end of an epoch that its samples have weight.
void TrainingLoop::require_weight() const {
  if (state_.epoch_means.weight() != 0) return;
  throw Error(
      ErrorKind::data,
      format("no sample of epoch {:.6g} weighs more than 0, so that the network cannot learn from them", epoch()),
      "check the weights of the data, train.class_weights, and samples that were skipped");
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
