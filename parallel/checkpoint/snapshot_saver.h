// Saves a snapshot: every rank writes its shards, rank 0 commits the checkpoint, and all ranks throw the same error if
// it fails.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "core/backend/communicator.h"
#include "core/exec/interfaces/snapshot.h"
#include "parallel/checkpoint/shard_plan.h"
#include "parallel/comm/joint_attempt.h"

namespace trainctl {

class PacedTransfer;

// The sink and the store to which a rank saves snapshots.
struct SnapshotOutlet {
  SnapshotSink* sink = nullptr;    // null: this rank's host does not share the run directory; never null on rank 0
  SnapshotStore* store = nullptr;  // null on all ranks but rank 0
  bool weights_only = false;       // whether the optimizer's state is left out
  bool is_memory = false;          // whether the snapshots are copies in shared memory: for messages
  // Once it is true on any rank, shards are no longer sent to rank 0, and save() throws CollectiveError{resource} on
  // all ranks; null: never.
  const std::atomic<bool>* gives_up = nullptr;
};

// Used by one thread at a time; while it saves, no other thread uses its communicator.
class SnapshotSaver {
 public:
  // All ranks must call this constructor. The objects that the outlet points to must outlive the saver.
  SnapshotSaver(const SnapshotPlan& plan, SnapshotOutlet outlet, Communicator& ranks, Stream& stream);

  // The number of bytes of the checkpoint's tensors.
  std::int64_t bytes() const { return bytes_; }

  // Writes the snapshot, whole or not at all; this rank's tensors are read only for the shards that it writes. Ranks
  // without a sink send their shards to rank 0, which writes them, one rank after the other, in a time of any length
  // (../comm/paced_transfer.h). All ranks must call this function; it returns the checkpoint's path on rank 0. If a
  // file cannot be written, all ranks throw the same CollectiveError{resource}.
  std::string save(const Snapshot& snapshot);

 private:
  // A file that every checkpoint has.
  struct File {
    SnapshotFile file;
    int rank;  // rank that holds the file's shards
    // On the ranks that write or send the file: its shards, whose memory is that of the snapshot being saved.
    std::vector<NamedTensor> shards;
  };

  void add_files(const ShardPlan& plan, SnapshotContent content);
  bool can_write(const File& file) const { return can_write_[static_cast<std::size_t>(file.rank)] != 0; }
  bool holds_all_on_rank_0() const;
  void share(SnapshotTarget& target);
  std::vector<std::string> write_files(const Snapshot& snapshot, const SnapshotTarget& target);
  void write_on_rank_0(const File& file, const SnapshotTarget& target, PacedTransfer& transfer, JointAttempt& attempt,
                       std::string& record);

  SnapshotOutlet outlet_;
  Communicator& ranks_;
  Stream& stream_;
  std::vector<File> files_;
  std::vector<std::int32_t> can_write_;  // for each rank: 1 if it has a sink, otherwise 0
  std::int64_t bytes_ = 0;
};

}  // namespace trainctl
