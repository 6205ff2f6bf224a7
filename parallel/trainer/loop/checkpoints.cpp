// Saving, and the time that a stop may take.
#include "parallel/trainer/loop/checkpoints.h"
#include "core/exec/interfaces/metrics_sink.h"

namespace trainctl {

void Checkpoints::save(Snapshot snapshot) {
  if (staged_step_ == snapshot.step) return;
  staged_step_ = snapshot.step;
  snapshot.mesh = parts_.mesh;
  snapshot.metadata.insert(parts_.metadata.begin(), parts_.metadata.end());
  saves_ = true;
  tell_stop_time();
  parts_.saver.stage(std::move(snapshot));
  report();
}

void Checkpoints::report() {
  if (!saves_) return;
  const bool idle = parts_.saver.is_idle();  // asked first: what is whole by now is told of
  while (const auto saved = parts_.saver.committed()) {
    saved_step_ = saved->step;
    if (parts_.sink == nullptr) continue;
    parts_.sink->checkpoint({.step = saved->step,
                             .path = saved->path,
                             .seconds = saved->seconds,
                             .bytes = parts_.saver.bytes(),
                             .stall_seconds = saved->stall_seconds});
  }
  if (!idle) return;
  saves_ = false;
  tell_stop_time();
}

void Checkpoints::wait() {
  try {
    parts_.saver.wait();
  } catch (...) {
    report();
    throw;
  }
  report();
}

// Steps of less than a few seconds stop in no time.
void Checkpoints::note_stop_time(double seconds) {
  constexpr double few = 5, grown = 1.2;
  if (seconds < few || seconds < grown * longest_between_looks_) return;
  longest_between_looks_ = seconds;
  tell_stop_time();
}

void Checkpoints::tell_stop_time() const {
  if (parts_.tell_stop_time) parts_.tell_stop_time(longest_between_looks_, saves_);
}

}  // namespace trainctl
