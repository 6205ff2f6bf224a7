// Reproducible mode: gradients and sums are added in an order that does not depend on the ranks.
#pragma once

#include "core/program/program.h"
#include "parallel/strategies/strategy.h"

namespace trainctl {

// Adds the reductions of reproducible mode to a training program. Each micro-batch of a program with Program::shards is
// a logical shard, which is a leaf of the tree in tree.h. Its backward pass writes gradients, statistics and sums to a
// slot. Then it adds this leaf to the sums of previous leaves that the leaf completes. It adds one group of gradients
// at a time, while the group is in the cache. A rank with several compute streams works in rounds instead: first each
// stream computes one leaf, then each stream adds some of the groups to the sums that the round completes. After the
// last leaf the replicas exchange their sums (exchange.h). If the number of replicas is a power of two, they send as
// many bytes as a ring all-reduce does.
//
// In a training program without logical shards, only the alignment of the parameters is changed: programs for
// evaluation use the same layout. Programs outside of reproducible mode are not changed.
Program add_in_tree(Program program, const MeshRank& rank, const Strategy& strategy);

}  // namespace trainctl
