// The checkpoints of the training loop, and what a supervisor is told of the time that a stop may take.
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
    MetricsSink* sink = nullptr;  // null on other ranks than 0
    std::vector<int> mesh;        // sizes of the data, pipeline and tensor axes
    SnapshotMetadata metadata;    // kept with every checkpoint: kernel choices, data fingerprint
    // Called on rank 0 with the longest time in seconds between two moments at which all ranks look for a request to
    // stop, when it has grown, and before and after a checkpoint is written. Null: nothing is told.
    std::function<void(double longest, bool saves)> tell_stop_time;
  };

  // What is referred to outlives the object.
  explicit Checkpoints(Parts parts) : parts_(std::move(parts)) {}

  // Completes the snapshot with tensors, mesh and metadata and stages it, unless its step was staged or saved before.
  // Called on all ranks after the same step; throws as StagedSaver::stage().
  void save(Snapshot snapshot);
  // Reports the checkpoints that have become whole to the sink. Called after every step.
  void report();
  // Waits until all that was staged is saved, and reports it. Called on all ranks after the same step; throws as
  // StagedSaver::wait().
  void wait();
  // Whether a save has failed, so that the run has to end: see StagedSaver::has_failed().
  bool has_failed() const { return parts_.saver.has_failed(); }

  // The step of the newest checkpoint that is whole; -1 if there is none. Equal on all ranks after wait().
  std::int64_t saved_step() const { return saved_step_; }
  // Takes a checkpoint of this step for saved, or, with -1, none.
  void set_saved_step(std::int64_t step) { saved_step_ = staged_step_ = step; }

  // Notes the time between two moments at which all ranks looked for a request to stop.
  void note_stop_time(double seconds);

 private:
  void tell_stop_time() const;

  Parts parts_;
  std::int64_t staged_step_ = -1;
  std::int64_t saved_step_ = -1;
  bool saves_ = false;                // something is staged that was not reported
  double longest_between_looks_ = 0;  // in seconds; 0: a few
};

}  // namespace trainctl
