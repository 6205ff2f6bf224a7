// Checkpoints that are written while training goes on: staged as they are at a step, written by a thread, and saved
// once they are whole.
//
// stage() copies this rank's parts into memory that the snapshot owns. The thread that writes them has a communicator
// of its own, on which it alone makes calls: those of one save after the other, in the order of stage(), which is the
// same on all ranks. So no save waits for training, and training waits for a save in three cases alone, on all ranks
// alike: both copies are in use, wait(), and the saver's end.
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
#include "core/exec/interfaces/step_engine.h"
#include "parallel/checkpoint/snapshot_saver.h"

namespace trainctl {

// A checkpoint that is whole.
struct SavedSnapshot {
  std::int64_t step = 0;
  std::string path;          // "" on other ranks than 0
  double seconds = 0;        // from the beginning of stage() until it was whole
  double stall_seconds = 0;  // of these, training stood still in stage()
};

class StagedSaver {
 public:
  // How many copies of its parts a rank has, used in turn: one is written while the next save is staged.
  static constexpr int copies = 2;

  // Collective. `background`: a thread writes; else stage() does, from the engine's own memory and without copies. What
  // is referred to outlives the saver.
  StagedSaver(StepEngine& engine, const SnapshotPlan& plan, const SnapshotOutlet& outlet, bool background,
              Communicator& world, Stream& stream);
  // Writes what is staged.
  ~StagedSaver();
  StagedSaver(const StagedSaver&) = delete;
  StagedSaver& operator=(const StagedSaver&) = delete;

  // Bytes of a checkpoint's tensors.
  std::int64_t bytes() const { return saver_->bytes(); }

  // Takes the engine's tensors as they are for this snapshot, whose own are empty. A save that comes due while another
  // one is being written waits for it, and the log says so if that takes a while. Called on all ranks after the same
  // step. Without a thread it throws as SnapshotSaver::save().
  void stage(Snapshot snapshot);
  // The oldest checkpoint that has become whole and was not told of before. Throws what ended this rank's thread alone,
  // such as a lost peer.
  std::optional<SavedSnapshot> committed();
  // Whether a save has failed: the ranks then have to agree on a step after which all call wait().
  bool has_failed() const { return has_failed_.load(std::memory_order_relaxed); }
  // Waits until everything that was staged is written. Called on all ranks after the same step; throws the error of a
  // save that has failed, on all of them.
  void wait();
  // Whether nothing is being written.
  bool is_idle() const;

 private:
  // Memory of this rank's parts, and the snapshot that is written from it.
  struct Copy {
    Memory memory;
    std::vector<NamedTensor> weights, state;
    Snapshot snapshot;
    double begin = 0;  // of stage()
    double stall = 0;
  };

  Copy make_copy() const;
  void stage_copy(Snapshot snapshot);
  void await_free(const Copy& copy);
  bool is_free(const Copy& copy) const;
  void write_staged();

  StepEngine& engine_;
  bool speaks_;
  std::vector<NamedTensor> weights_, state_;  // the engine's tensors of which this rank writes something
  std::unique_ptr<Communicator> own_ranks_;   // null: without a thread
  ImmediateStream own_stream_;
  std::unique_ptr<SnapshotSaver> saver_;
  std::array<Copy, copies> copies_;
  std::int64_t staged_ = 0;

  std::atomic<bool> has_failed_{false};
  mutable std::mutex mutex_;  // of all that follows
  std::condition_variable changed_;
  std::deque<Copy*> queue_;  // staged and not yet whole, the oldest first
  std::deque<SavedSnapshot> saved_;
  std::exception_ptr failure_;    // of the thread
  bool failed_together_ = false;  // all ranks have this failure
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace trainctl
