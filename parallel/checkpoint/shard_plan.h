// Who writes which part of a checkpoint: of every part the lowest rank that holds it.
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

// A tensor of which every element is in exactly one part.
struct PlannedTensor {
  std::string name;
  Shape shape;
  std::vector<PlannedShard> parts;  // those of lower ranks first
};

class ShardPlan {
 public:
  // From the tensors that each rank holds (memory is not looked at). Throws Error{internal} that names the tensor where
  // its parts overlap without being equal, leave something out or are of different shapes.
  explicit ShardPlan(std::span<const std::vector<NamedTensor>> of_ranks);

  // In bytewise order of their names.
  const std::vector<PlannedTensor>& tensors() const { return tensors_; }
  // The ranks that write something, ascending: rank 0 where there is nothing to write.
  const std::vector<int>& writers() const { return writers_; }
  // The parts that a rank writes, without memory, in bytewise order of their names.
  std::vector<NamedTensor> shards_of(int rank) const;
  // Of all tensors together, and of the parts that a rank writes.
  std::int64_t bytes() const;
  std::int64_t bytes_of(int rank) const;

 private:
  std::vector<PlannedTensor> tensors_;
  std::vector<int> writers_;
};

// The plan of all ranks, from what this one holds. Collective; equal on all ranks.
ShardPlan plan_shards(std::span<const NamedTensor> mine, Communicator& world, Stream& stream);

struct SnapshotPlan {
  ShardPlan weights;
  ShardPlan state;
};

// Likewise of the weights and the optimizer's state.
SnapshotPlan plan_snapshot(std::span<const NamedTensor> weights, std::span<const NamedTensor> state,
                           Communicator& world, Stream& stream);

}  // namespace trainctl
