// Saves snapshots: every rank writes its part, rank 0 completes the checkpoint, and all end a failed save alike.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/backend/communicator.h"
#include "core/exec/interfaces/snapshot.h"
#include "parallel/comm/joint_attempt.h"
#include "parallel/trainer/part_plan.h"

namespace trainctl {

// What a rank saves with.
struct SnapshotOutlet {
  SnapshotWriter* writer = nullptr;  // null: this rank's host does not share the run directory; rank 0 always has one
  SnapshotStore* store = nullptr;    // rank 0's, null on the others
  bool weights_only = false;         // leave out the optimizer's state
};

class SnapshotSaver {
 public:
  // Collective. The plan and what the outlet refers to outlive the saver.
  SnapshotSaver(const SnapshotPlan& plan, SnapshotOutlet outlet, Communicator& world, Stream& stream);

  // Whether save() and weights_sha256() read this rank's tensors.
  bool reads_tensors() const { return reads_tensors_; }
  // That a checkpoint's tensors take.
  std::int64_t bytes() const { return bytes_; }

  // Writes the snapshot, whole or not at all; of the tensors this rank gives the parts that it holds. Parts of ranks
  // without a writer travel to rank 0, which writes them. Collective; returns the checkpoint's path on rank 0. Where
  // something cannot be written, all ranks throw the same CollectiveError{resource}.
  std::string save(const Snapshot& snapshot);

  // Of all ranks' weights, of which this one gives the parts that it holds. Collective; on rank 0, "" on the others.
  std::string weights_sha256(std::span<const NamedTensor> weights) { return sha256_of(plan_.weights, weights); }
  // Likewise of the optimizer's state.
  std::string state_sha256(std::span<const NamedTensor> state) { return sha256_of(plan_.state, state); }

 private:
  // A file of every checkpoint.
  struct File {
    const PartPlan* plan;
    SnapshotFile file;
    int rank;  // whose parts it holds
  };

  void add_files(const PartPlan& plan, SnapshotContent content);
  bool holds_all_on_rank_0() const;
  void share(SnapshotTarget& target);
  std::vector<std::string> write_files(const Snapshot& snapshot, const SnapshotTarget& target);
  void write_carried(const File& file, const std::vector<NamedTensor>& parts, const SnapshotTarget& target,
                     JointAttempt& attempt, std::string& record);
  std::string sha256_of(const PartPlan& plan, std::span<const NamedTensor> tensors);
  View gather(const PlannedTensor& tensor, const View& own, std::vector<float>& memory);

  const SnapshotPlan& plan_;
  SnapshotOutlet outlet_;
  Communicator& world_;
  Stream& stream_;
  std::vector<File> files_;
  std::vector<std::int32_t> can_write_;  // of each rank
  std::int64_t bytes_ = 0;
  bool reads_tensors_ = false;
};

}  // namespace trainctl
