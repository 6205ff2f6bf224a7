// Logical shards: the parts into which reproducible mode cuts every batch, whatever the number of ranks.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/base/checked.h"

namespace trainctl {

// The leaves of a tree.
struct LeafRange {
  int first = 0;
  int end = 0;

  int count() const { return end - first; }
  bool operator==(const LeafRange&) const = default;
};

// A full batch is cut into `count` shards of `samples` samples each. A smaller batch has fewer of them, and a last one
// with what is left.
struct LogicalShards {
  int count = 0;             // 0: batches are not cut into logical shards
  std::int64_t samples = 0;  // of one shard

  bool any() const { return count > 0; }
  // How many shards a batch of so many samples has.
  int of_batch(std::int64_t batch) const { return static_cast<int>(divide_up(batch, samples)); }
  // The shards of a full batch that a replica holds: its part of a row, whose lengths differ by one at most.
  LeafRange of_replica(int replica, int replicas) const {
    const auto begin = [&](std::int64_t r) { return static_cast<int>(count * r / replicas); };
    return {begin(replica), begin(replica + 1)};
  }
  // Those of them that a smaller batch of `present` shards has; an empty range where it has none.
  LeafRange of_replica(int replica, int replicas, int present) const {
    const LeafRange all = of_replica(replica, replicas);
    return {std::min(all.first, present), std::min(all.end, present)};
  }
  bool operator==(const LogicalShards&) const = default;
};

// The logical shards of one step's batch.
struct ShardedStep {
  LogicalShards shards;
  int present = 0;  // shards of the step's batch

  bool any() const { return shards.any(); }
};

}  // namespace trainctl
