// Saves checkpoints and reports the time that a stop may take.
#include "parallel/trainer/loop/checkpoints.h"
#include "core/exec/interfaces/metrics_sink.h"

namespace trainctl {

void Checkpoints::save(Snapshot snapshot) {
  if (staged_step_ == snapshot.step) return;
  staged_step_ = snapshot.step;
  snapshot.mesh = parts_.mesh;
  snapshot.metadata.insert(parts_.metadata.begin(), parts_.metadata.end());
  is_saving_ = true;
  tell_stop_time();
  parts_.saver.stage(std::move(snapshot));
  report();
}

void Checkpoints::report() {
  if (!is_saving_) return;
  const bool idle = parts_.saver.is_idle();  // read first, so that all checkpoints committed so far are reported
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
  is_saving_ = false;
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

// Intervals of less than a few seconds are not reported, since the run then stops quickly.
void Checkpoints::note_stop_time(double seconds) {
  constexpr double min_seconds = 5, min_growth = 1.2;
  if (seconds < min_seconds || seconds < min_growth * longest_between_checks_) return;
  longest_between_checks_ = seconds;
  tell_stop_time();
}

void Checkpoints::tell_stop_time() const {
  if (parts_.tell_stop_time) parts_.tell_stop_time(longest_between_checks_, is_saving_);
}

}  // namespace trainctl
