// Writes checkpoints while training continues: stages a copy of a step's tensors, which a thread then writes.
//
// stage() copies this rank's shards into memory that the snapshot owns. The thread that writes them has a communicator
// of its own and saves the snapshots in the order of the calls of stage(), which is the same on all ranks. Therefore no
// save waits for training. Training waits for a save in three cases, each on all ranks: if both copies are in use, in
// wait(), and when the saver is destroyed.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/backend/immediate_stream.h"
#include "core/base/flight_record.h"
#include "core/exec/interfaces/step_engine.h"
#include "parallel/checkpoint/snapshot_saver.h"

namespace trainctl {

// A checkpoint that was committed.
struct SavedSnapshot {
  std::int64_t step = 0;
  std::string path;          // empty on all ranks but rank 0
  double seconds = 0;        // time from the start of stage() to the commit
  double stall_seconds = 0;  // the part of this time that training waited in stage()
};

class StagedSaver {
 public:
  // The number of copies of a rank's shards, used in turn: one is written while stage() fills the other.
  static constexpr int copies = 2;

  // All ranks must call this constructor. `background`: whether a thread writes. Otherwise stage() writes from the
  // engine's own memory without a copy. All arguments must outlive the saver.
  StagedSaver(StepEngine& engine, const SnapshotPlan& plan, const SnapshotOutlet& outlet, bool background,
              Communicator& world, Stream& stream);
  // Writes the snapshots that are staged.
  ~StagedSaver();
  StagedSaver(const StagedSaver&) = delete;
  StagedSaver& operator=(const StagedSaver&) = delete;

  // The number of bytes of a checkpoint's tensors.
  std::int64_t bytes() const { return saver_->bytes(); }

  // Fills the snapshot, which has no tensors yet, with the engine's present tensors and saves it. If another snapshot
  // is still being written, this one waits for it; a long wait is logged. Called on all ranks after the same step.
  // Without a thread it throws the same errors as SnapshotSaver::save().
  void stage(Snapshot snapshot);
  // Returns the oldest committed checkpoint that was not returned before; empty if there is no such checkpoint. If an
  // error has ended the thread on this rank only, such as a lost peer, throws this error.
  std::optional<SavedSnapshot> committed();
  // Returns whether a save has failed. The ranks must then agree on a step after which all of them call wait().
  bool has_failed() const { return has_failed_.load(std::memory_order_relaxed); }
  // Waits until all staged snapshots are written. Called on all ranks after the same step; if a save has failed, throws
  // its error on all ranks.
  void wait();
  // Returns whether no snapshot is being written.
  bool is_idle() const;

 private:
  // Memory for this rank's shards, and the snapshot that is written from it.
  struct Copy {
    Memory memory;
    std::vector<NamedTensor> weights, state;
    Snapshot snapshot;
    double begin = 0;  // time at which stage() was called
    double stall = 0;  // seconds that stage() took
  };

  Copy make_copy() const;
  void stage_copy(Snapshot snapshot);
  void wait_until_free(const Copy& copy);
  bool is_free(const Copy& copy) const;
  void write_staged();

  StepEngine& engine_;
  bool logs_;
  std::vector<NamedTensor> weights_, state_;  // the engine's tensors that this rank writes
  std::unique_ptr<Communicator> own_ranks_;   // null if there is no thread
  ImmediateStream own_stream_;
  std::unique_ptr<SnapshotSaver> saver_;
  FlightLine line_;  // of the thread, in the rank's flight record
  std::array<Copy, copies> copies_;
  std::int64_t staged_ = 0;

  std::atomic<bool> has_failed_{false};
  mutable std::mutex mutex_;  // guards all members below
  std::condition_variable changed_;
  std::deque<Copy*> queue_;  // staged copies that are not yet committed, the oldest first
  std::deque<SavedSnapshot> saved_;
  std::exception_ptr failure_;    // the error that ended the thread
  bool failed_together_ = false;  // whether all ranks failed with the same error
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace trainctl
