// Writes checkpoints while training continues: stages a copy of a step's tensors, which a thread then writes.
//
// stage() copies this rank's shards into memory that the snapshot owns. The thread that writes them has a communicator
// of its own and saves the snapshots in the order of the calls of stage(), which is the same on all ranks. Therefore no
// save waits for training. Training waits for a save in three cases, each on all ranks: if both copies are in use, in
// wait(), and when the saver is destroyed. A snapshot that cannot be written, because the disk is full, is left out on
// all ranks, and the next one is tried again.
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
#include "core/base/error.h"
#include "core/base/flight_record.h"
#include "core/exec/interfaces/step_engine.h"
#include "parallel/checkpoint/snapshot_saver.h"

namespace trainctl {

// A save that has ended.
struct EndedSave {
  std::int64_t step = 0;
  bool is_best = false;      // whether the snapshot has the best value of the run so far
  std::string path;          // of the committed checkpoint; empty on all ranks but rank 0
  double seconds = 0;        // time from the start of stage() to the commit
  double stall_seconds = 0;  // the part of this time that training waited in stage()
  // Why the checkpoint could not be written; equal on all ranks. Empty if it was committed.
  std::optional<CollectiveError> failure = {};
};

class StagedSaver {
 public:
  // The number of copies of a rank's shards, used in turn: one is written while stage() fills the other.
  static constexpr int copies = 2;

  // All ranks must call this constructor. `background`: whether a thread writes. Otherwise stage() writes from the
  // engine's own memory without a copy. All arguments must outlive the saver.
  StagedSaver(StepEngine& engine, const SnapshotPlan& plan, const SnapshotOutlet& outlet, bool background,
              Communicator& world, Stream& stream);
  // Writes the snapshots that are staged. Gives up copies in memory for which shards are still being sent.
  ~StagedSaver();
  StagedSaver(const StagedSaver&) = delete;
  StagedSaver& operator=(const StagedSaver&) = delete;

  // The number of bytes of a checkpoint's tensors.
  std::int64_t bytes() const { return saver_->bytes(); }

  // Fills the snapshot, which has no tensors yet, with the engine's present tensors and saves it. If another snapshot
  // is still being written, this one waits for it; long waits are logged, once a minute at most. Called on all ranks
  // after the same step.
  void stage(Snapshot snapshot);
  // Like stage(), unless training would have to wait for another save on any rank: then the snapshot is left out.
  void stage_if_free(Snapshot snapshot);
  // The seconds for which the last call of stage() stopped training, without its wait for another save.
  double stage_seconds() const { return stage_seconds_; }
  // Returns the oldest save that has ended and was not returned before; empty if there is none. If an error has ended
  // the thread, such as a lost peer, throws this error.
  std::optional<EndedSave> ended();
  // Waits until all staged snapshots are written or left out. Called on all ranks after the same step. Throws the error
  // that has ended the thread.
  void wait();
  // Returns whether no snapshot is being written.
  bool is_idle() const;

 private:
  // Memory for this rank's shards, and the snapshot that is written from it, whose tensors always lie there.
  struct Copy {
    Memory memory;
    Snapshot snapshot;
    double begin = 0;  // time at which stage() was called
    double stall = 0;  // seconds that stage() took
  };

  Copy make_copy() const;
  void stage_copy(Snapshot snapshot);
  void wait_until_free(const Copy& copy);
  bool is_free(const Copy& copy) const;
  EndedSave save(const Snapshot& snapshot);
  void write_staged();

  StepEngine& engine_;
  Communicator& world_;
  bool logs_;
  std::string kind_;                          // "checkpoint" or "copy in memory"
  std::string key_;                           // key of the config that says how often snapshots are saved
  std::vector<NamedTensor> weights_, state_;  // the engine's tensors that this rank writes
  std::unique_ptr<Communicator> own_ranks_;   // null if there is no thread
  ImmediateStream own_stream_;
  std::atomic<bool> gives_up_{false};
  std::unique_ptr<SnapshotSaver> saver_;
  FlightLine line_;  // of the thread, in the rank's flight record
  std::array<Copy, copies> copies_;
  std::int64_t staged_ = 0;
  double stage_seconds_ = 0;
  double next_note_ = 0, next_warning_ = 0;  // times before which long waits are not logged again
  bool left_out_ = false;                    // whether the last snapshot was left out by stage_if_free()

  mutable std::mutex mutex_;  // guards all members below
  std::condition_variable changed_;
  std::deque<Copy*> queue_;  // staged copies whose save has not ended, the oldest first
  std::deque<EndedSave> ended_;
  std::exception_ptr failure_;  // the error that ended the thread
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace trainctl
