// Saves a snapshot: every rank writes its parts, rank 0 completes the checkpoint, and all end a failed save alike.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/backend/communicator.h"
#include "core/exec/interfaces/snapshot.h"
#include "parallel/checkpoint/shard_plan.h"
#include "parallel/comm/joint_attempt.h"

namespace trainctl {

// What a rank saves with.
struct SnapshotOutlet {
  SnapshotSink* sink = nullptr;    // null: this rank's host does not share the run directory; rank 0 always has one
  SnapshotStore* store = nullptr;  // rank 0's, null on the others
  bool weights_only = false;       // leave out the optimizer's state
};

// Used by one thread at a time, and its communicator by that thread alone while it saves.
class SnapshotSaver {
 public:
  // Collective. The plan and what the outlet refers to outlive the saver.
  SnapshotSaver(const SnapshotPlan& plan, SnapshotOutlet outlet, Communicator& ranks, Stream& stream);

  // Bytes of the checkpoint's tensors.
  std::int64_t bytes() const { return bytes_; }

  // Writes the snapshot, whole or not at all; of the tensors this rank gives the parts that it writes. Parts of ranks
  // without a sink travel to rank 0, which writes them. Collective; returns the checkpoint's path on rank 0. Where
  // something cannot be written, all ranks throw the same CollectiveError{resource}.
  std::string save(const Snapshot& snapshot);

 private:
  // A file of every checkpoint.
  struct File {
    const ShardPlan* plan;
    SnapshotFile file;
    int rank;  // whose parts it holds
  };

  void add_files(const ShardPlan& plan, SnapshotContent content);
  bool holds_all_on_rank_0() const;
  void share(SnapshotTarget& target);
  std::vector<std::string> write_files(const Snapshot& snapshot, const SnapshotTarget& target);
  void write_carried(const File& file, const std::vector<NamedTensor>& parts, const SnapshotTarget& target,
                     JointAttempt& attempt, std::string& record);

  SnapshotOutlet outlet_;
  Communicator& ranks_;
  Stream& stream_;
  std::vector<File> files_;
  std::vector<std::int32_t> can_write_;  // of each rank
  std::int64_t bytes_ = 0;
};

}  // namespace trainctl
