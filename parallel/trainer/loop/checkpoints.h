// Saves the checkpoints of the training loop, and tells the supervisor how long a stop may take.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/exec/interfaces/snapshot_metadata.h"
#include "parallel/checkpoint/staged_saver.h"
#include "parallel/trainer/loop/checkpoint_interval.h"

namespace trainctl {

class MetricsSink;

class Checkpoints {
 public:
  struct Parts {
    StagedSaver& saver;
    StagedSaver* memory = nullptr;  // saves to shared memory; null if no copies are kept there
    StagedSaver* peer = nullptr;    // saves to the shared memory of a second host; null if no copies are kept there
    std::string peer_host = {};     // the name of that host
    MetricsSink* sink = nullptr;    // null on all ranks but rank 0
    std::vector<int> mesh;          // sizes of the data, pipeline and tensor axes
    SnapshotMetadata metadata;      // stored in every checkpoint: kernel choices, data fingerprint
    std::string newest = {};        // path of the newest whole checkpoint so far; empty: none, or not rank 0
    // Reports how long a stop may take. `longest`: the longest time so far between two checks of all ranks for a stop
    // request, in seconds; `saves`: whether a checkpoint is being written; `fails`: whether the last one could not be
    // written. Called on rank 0 when one of them changes. May be null.
    std::function<void(double longest, bool saves, bool fails)> tell_stop_time;
  };

  // All parts must outlive the object.
  explicit Checkpoints(Parts parts) : parts_(std::move(parts)) {}

  // Completes the snapshot with tensors, mesh and metadata and stages it, unless its step was staged or saved before.
  // Called on all ranks after the same step.
  void save(Snapshot snapshot);
  // As save(), to shared memory. Copies are not reported; if one cannot be written, a warning is logged. A copy on a
  // second host is left out while copies before it are still being sent there.
  void keep_in_memory(Snapshot snapshot);
  // Reports newly committed checkpoints to the sink, and logs a warning for each one that could not be written. Called
  // after every step. Throws the same errors as StagedSaver::ended().
  void report();
  // Waits until the saves of all staged snapshots have ended, and reports them. Called on all ranks after the same
  // step; throws the same errors as StagedSaver::wait().
  void wait();
  // Throws CollectiveError{resource} on all ranks if the last staged snapshot could not be written. Called on all ranks
  // after wait().
  void require_saved() const;

  // What the last saves have cost this rank.
  SaveCost cost() const;

  // The step of the best result, if its checkpoint could not be written and no better result was saved since; -1
  // otherwise. After wait() the result is equal on all ranks.
  std::int64_t missing_best_step() const { return missing_best_step_; }
  // Called on all ranks of a run that goes on without the checkpoint of its best result, of this step.
  void set_missing_best_step(std::int64_t step) { missing_best_step_ = step; }
  // Returns the step of the newest committed checkpoint; -1 if no checkpoint was committed. After wait() the result is
  // equal on all ranks.
  std::int64_t saved_step() const { return saved_step_; }
  // Treats the checkpoint of this step as saved; -1: no checkpoint is saved.
  void set_saved_step(std::int64_t step) { saved_step_ = staged_step_ = step; }

  // Notes the time between two checks of all ranks for a stop request.
  void note_stop_time(double seconds);

 private:
  void tell_stop_time() const;
  void complete(Snapshot& snapshot) const;
  void report_memory();
  void report_copies(StagedSaver& saver, const std::string& place, bool& fails) const;
  void note_saved(const EndedSave& save);
  void note_left_out(const EndedSave& save);

  Parts parts_;
  std::int64_t staged_step_ = -1;
  std::int64_t saved_step_ = -1;
  std::int64_t missing_best_step_ = -1;
  bool memory_fails_ = false;          // whether the last copy could not be written to shared memory
  bool peer_fails_ = false;            // likewise on the second host
  std::optional<EndedSave> left_out_;  // the newest save, if it has failed
  std::string newest_path_;            // of the newest checkpoint that this object has saved; only on rank 0
  double write_seconds_ = 0;           // time until the last checkpoint was whole
  double saving_since_ = 0;            // the time at which is_saving_ became true, by seconds_now()
  bool is_saving_ = false;             // whether a staged snapshot has not been reported
  double longest_between_checks_ = 0;  // in seconds; 0: less than a few seconds
};

}  // namespace trainctl
