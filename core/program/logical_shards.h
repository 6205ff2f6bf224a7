// Logical shards: reproducible mode cuts every batch into the same shards for any number of ranks.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/base/checked.h"

namespace trainctl {

// A range of leaves of a tree of sums, from `first` to below `end`.
struct LeafRange {
  int first = 0;
  int end = 0;

  int count() const { return end - first; }
};

// A full batch is cut into `count` shards of `samples` samples each. A smaller batch has fewer shards, and the last
// shard holds the remaining samples. Each replica holds a row of neighbouring shards, and the rows' lengths differ by
// one at most. Alternatively, the shards are interleaved (round robin).
struct LogicalShards {
  int count = 0;             // 0: batches are not cut into logical shards
  std::int64_t samples = 0;  // samples of one shard
  bool interleaved = false;  // the i-th shard of replica r of R is i * R + r

  bool any() const { return count > 0; }
  // The number of shards of a batch of `batch` samples.
  int of_batch(std::int64_t batch) const { return static_cast<int>(divide_up(batch, samples)); }
  // The row of a replica in a batch of `present` shards; empty if the replica holds none.
  LeafRange row_of(int replica, int replicas, int present) const {
    const auto begin = [&](std::int64_t r) { return std::min(static_cast<int>(count * r / replicas), present); };
    return {begin(replica), begin(replica + 1)};
  }
  // The number of shards that a replica holds of a batch of `present` shards, and the index of its i-th shard in the
  // batch.
  int held_by(int replica, int replicas, int present) const {
    if (!interleaved) return row_of(replica, replicas, present).count();
    return std::max(present - replica + replicas - 1, 0) / replicas;
  }
  int shard_of(int replica, int replicas, int i) const {
    return interleaved ? i * replicas + replica : row_of(replica, replicas, count).first + i;
  }
};

// The logical shards of one step's batch.
struct ShardedStep {
  LogicalShards shards;
  int present = 0;  // number of shards of the step's batch

  bool any() const { return shards.any(); }
};

}  // namespace trainctl
