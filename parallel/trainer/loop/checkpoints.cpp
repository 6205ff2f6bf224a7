// Saves checkpoints and reports the time that a stop may take.
#include "parallel/trainer/loop/checkpoints.h"

#include <algorithm>
#include <utility>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/failure.h"
#include "core/base/format.h"
#include "core/base/log.h"
#include "core/exec/interfaces/metrics_sink.h"

namespace trainctl {

void Checkpoints::save(Snapshot snapshot) {
  if (staged_step_ == snapshot.step) return;
  staged_step_ = snapshot.step;
  complete(snapshot);
  if (!is_saving_) saving_since_ = seconds_now();
  is_saving_ = true;
  tell_stop_time();
  parts_.saver.stage(std::move(snapshot));
  report();
}

void Checkpoints::complete(Snapshot& snapshot) const {
  snapshot.mesh = parts_.mesh;
  snapshot.metadata.insert(parts_.metadata.begin(), parts_.metadata.end());
}

void Checkpoints::keep_in_memory(Snapshot snapshot) {
  complete(snapshot);
  if (parts_.peer != nullptr) parts_.peer->stage_if_free(snapshot);
  parts_.memory->stage(std::move(snapshot));
  report_memory();
}

void Checkpoints::report_memory() {
  report_copies(*parts_.memory, "memory", memory_fails_);
  if (parts_.peer != nullptr) report_copies(*parts_.peer, "the memory of " + parts_.peer_host, peer_fails_);
}

// `fails`: whether the last copy could not be written.
void Checkpoints::report_copies(StagedSaver& saver, const std::string& place, bool& fails) const {
  while (const auto save = saver.ended()) {
    const bool failed_before = std::exchange(fails, save->failure.has_value());
    if (!fails || failed_before || parts_.sink == nullptr) continue;
    log::warning(format("the copy of step {} in {} was not written; the next one is tried when it is due: {}",
                        save->step, place, save->failure->what()));
  }
}

void Checkpoints::report() {
  if (parts_.memory != nullptr) report_memory();
  if (!is_saving_) return;
  const bool idle = parts_.saver.is_idle();  // read first, so that all saves that have ended so far are reported
  while (const auto save = parts_.saver.ended()) save->failure ? note_left_out(*save) : note_saved(*save);
  if (!idle) return;
  is_saving_ = false;
  tell_stop_time();
}

// A checkpoint that is still being written has cost at least the time that has passed.
SaveCost Checkpoints::cost() const {
  const double so_far = is_saving_ ? seconds_now() - saving_since_ : 0;
  return {parts_.saver.stage_seconds(), std::max(write_seconds_, so_far)};
}

void Checkpoints::note_saved(const EndedSave& save) {
  saved_step_ = save.step;
  write_seconds_ = save.seconds;
  if (save.is_best) missing_best_step_ = -1;
  const bool resumes = left_out_.has_value();
  left_out_.reset();
  if (parts_.sink == nullptr) return;
  newest_path_ = save.path;
  if (resumes) log::info(format("checkpoints can be written again: {}", save.path));
  parts_.sink->checkpoint({.step = save.step,
                           .path = save.path,
                           .seconds = save.seconds,
                           .bytes = parts_.saver.bytes(),
                           .stall_seconds = save.stall_seconds});
}

void Checkpoints::note_left_out(const EndedSave& save) {
  left_out_ = save;
  if (save.is_best) missing_best_step_ = save.step;
  if (parts_.sink == nullptr) return;
  log::warning(
      format("the checkpoint of step {} was not written; training goes on, and the next checkpoint is tried "
             "when it is due: {}",
             save.step, save.failure->what()));
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

void Checkpoints::require_saved() const {
  if (!left_out_) return;
  const CollectiveError& failure = *left_out_->failure;
  const std::string& newest = newest_path_.empty() ? parts_.newest : newest_path_;
  throw CollectiveError(ErrorKind::resource, failure.location(),
                        format("the run has ended after step {}, and its last state could not be saved: {}",
                               left_out_->step, without_location(failure)),
                        newest.empty()
                            ? "the run has no whole checkpoint"
                            : format("the newest whole checkpoint is {}; the same command goes on from there", newest));
}

// Intervals of less than a few seconds are not reported, since the run then stops quickly.
void Checkpoints::note_stop_time(double seconds) {
  constexpr double min_seconds = 5, min_growth = 1.2;
  if (seconds < min_seconds || seconds < min_growth * longest_between_checks_) return;
  longest_between_checks_ = seconds;
  tell_stop_time();
}

void Checkpoints::tell_stop_time() const {
  if (parts_.tell_stop_time) parts_.tell_stop_time(longest_between_checks_, is_saving_, left_out_.has_value());
}

}  // namespace trainctl
