// Saving, and the time that a stop may take.
#include "parallel/trainer/loop/checkpoints.h"

#include "core/base/clock.h"

namespace trainctl {

void Checkpoints::save(Snapshot snapshot) {
  if (saved_step_ == snapshot.step) return;
  saved_step_ = snapshot.step;
  const double start = seconds_now();
  tell_stop_time(true);
  if (parts_.saver.reads_tensors()) parts_.engine.download();
  snapshot.weights = parts_.engine.weights();
  snapshot.state = parts_.engine.state();
  snapshot.mesh = parts_.mesh;
  snapshot.facts.insert(parts_.facts.begin(), parts_.facts.end());
  const std::string path = parts_.saver.save(snapshot);
  tell_stop_time(false);
  if (parts_.sink == nullptr) return;
  parts_.sink->checkpoint(
      {.step = snapshot.step, .path = path, .seconds = seconds_now() - start, .bytes = parts_.saver.bytes()});
}

std::string Checkpoints::weights_sha256() {
  if (parts_.saver.reads_tensors()) parts_.engine.download();
  return parts_.saver.weights_sha256(parts_.engine.weights());
}

// Steps of less than a few seconds stop in no time.
void Checkpoints::note_stop_time(double seconds) {
  constexpr double few = 5, grown = 1.2;
  if (seconds < few || seconds < grown * longest_between_looks_) return;
  longest_between_looks_ = seconds;
  tell_stop_time(false);
}

void Checkpoints::tell_stop_time(bool saves) const {
  if (parts_.tell_stop_time) parts_.tell_stop_time(longest_between_looks_, saves);
}

}  // namespace trainctl
