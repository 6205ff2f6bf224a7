// Reproducible mode with sharded gradients (`shard: gradients` and `shard: parameters`).
#pragma once

#include "core/program/program.h"
#include "parallel/strategies/strategy.h"

namespace trainctl {

// Adds the leaves of a round, one of each replica, in the micro-batch of the round, since no replica keeps whole
// gradients. After its last gradient each bucket is exchanged (all_to_all). Then each replica adds its shard of the
// received gradients to a stack of sums (sums_of_rounds) in slots of the gradients' region. A replica holds at most one
// shard for each level of the tree. Losses, metrics and statistics are added in the same way, and gathered after the
// last round. The program must have buckets of sharded gradients in its slot, and replicas must hold leaves in turn
// (LogicalShards::interleaved).
Program add_interleaved(Program program, const MeshRank& rank, const Strategy& strategy);

}  // namespace trainctl
