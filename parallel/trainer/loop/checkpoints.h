// Saves the checkpoints of the training loop, and tells the supervisor how long a stop may take.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/exec/interfaces/snapshot_metadata.h"
#include "parallel/checkpoint/staged_saver.h"

namespace trainctl {

class MetricsSink;

class Checkpoints {
 public:
  struct Parts {
    StagedSaver& saver;
    MetricsSink* sink = nullptr;  // null on all ranks but rank 0
    std::vector<int> mesh;        // sizes of the data, pipeline and tensor axes
    SnapshotMetadata metadata;    // stored in every checkpoint: kernel choices, data fingerprint
    // Reports how long a stop may take. `longest`: the longest time so far between two checks of all ranks for a stop
    // request, in seconds; `saves`: whether a checkpoint is being written. Called on rank 0 when one of them changes.
    // May be null.
    std::function<void(double longest, bool saves)> tell_stop_time;
  };

  // All parts must outlive the object.
  explicit Checkpoints(Parts parts) : parts_(std::move(parts)) {}

  // Completes the snapshot with tensors, mesh and metadata and stages it, unless its step was staged or saved before.
  // Called on all ranks after the same step; throws the same errors as StagedSaver::stage().
  void save(Snapshot snapshot);
  // Reports newly committed checkpoints to the sink. Called after every step.
  void report();
  // Waits until all staged snapshots are saved, and reports them. Called on all ranks after the same step; throws the
  // same errors as StagedSaver::wait().
  void wait();
  // Whether a save has failed, so that the run has to end: see StagedSaver::has_failed().
  bool has_failed() const { return parts_.saver.has_failed(); }

  // Returns the step of the newest committed checkpoint; -1 if no checkpoint was committed. After wait() the result is
  // equal on all ranks.
  std::int64_t saved_step() const { return saved_step_; }
  // Treats the checkpoint of this step as saved; -1: no checkpoint is saved.
  void set_saved_step(std::int64_t step) { saved_step_ = staged_step_ = step; }

  // Notes the time between two checks of all ranks for a stop request.
  void note_stop_time(double seconds);

 private:
  void tell_stop_time() const;

  Parts parts_;
  std::int64_t staged_step_ = -1;
  std::int64_t saved_step_ = -1;
  bool is_saving_ = false;             // whether a staged snapshot has not been reported
  double longest_between_checks_ = 0;  // in seconds; 0: less than a few seconds
};

}  // namespace trainctl
