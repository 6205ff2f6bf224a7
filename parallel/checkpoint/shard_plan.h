// The shard plan assigns each shard of a checkpoint's tensors to the rank that writes it: the lowest rank that holds
// it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/backend/communicator.h"
#include "core/exec/interfaces/snapshot.h"

namespace trainctl {

struct PlannedShard {
  TensorExtent extent;
  int writer = 0;
};

// A tensor and its shards, which contain every element exactly once. A tensor that ranks hold whole has one shard.
struct PlannedTensor {
  std::string name;
  Shape shape;
  std::vector<PlannedShard> shards;  // ascending by writer
};

class ShardPlan {
 public:
  // `of_ranks`: the tensors or shards that each rank holds; their memory is not read. Throws Error{internal} that names
  // the tensor if its shards do not cover it, or differ in the tensor's shape. Replicas may have cut it differently:
  // the plan then chooses shards so that each element is in exactly one of them.
  explicit ShardPlan(std::span<const std::vector<NamedTensor>> of_ranks);

  // The tensors in bytewise order of their names.
  const std::vector<PlannedTensor>& tensors() const { return tensors_; }
  // Returns the ranks that write at least one shard, ascending; {0} if the plan has no tensors.
  const std::vector<int>& writers() const { return writers_; }
  // The shards that a rank writes, in bytewise order of their names. The pointers to their memory are null.
  std::vector<NamedTensor> shards_of(int rank) const;
  // The number of bytes of all tensors.
  std::int64_t bytes() const;
  // The number of bytes of the shards that a rank writes.
  std::int64_t bytes_of(int rank) const;

 private:
  std::vector<PlannedTensor> tensors_;
  std::vector<int> writers_;
};

// Computes the plan of all ranks; `mine`: the tensors or shards that this rank holds. All ranks must call this
// function; the result is equal on all ranks.
ShardPlan plan_shards(std::span<const NamedTensor> mine, Communicator& world, Stream& stream);

struct SnapshotPlan {
  ShardPlan weights;
  ShardPlan state;
};

// Computes the plans of the weights and of the optimizer's state. All ranks must call this function; the result is
// equal on all ranks.
SnapshotPlan plan_snapshot(std::span<const NamedTensor> weights, std::span<const NamedTensor> state,
                           Communicator& world, Stream& stream);

}  // namespace trainctl
