// Reproducible mode: gradients and sums are added in an order that does not depend on the ranks.
#pragma once

#include "core/program/program.h"
#include "parallel/strategies/strategy.h"

namespace trainctl {

// Each micro-batch of a program with Program::shards is a logical shard, a leaf of the tree in tree.h. Its backward
// pass writes gradients, statistics and sums to a slot and adds them to the sums of previous leaves as soon as the leaf
// completes these, group by group while the gradients are in the cache. A rank with several compute streams computes
// rounds of one leaf on each stream in parallel and then the sums that the round completes, each stream some of the
// groups. Replicas then exchange their sums (exchange.h), with the number of bytes of a ring if the number of replicas
// is a power of two. Training programs without logical shards, whose layout those of evaluation follow, only have their
// alignment of parameters changed; programs outside of reproducible mode are not changed.
Program add_in_tree(Program program, const MeshRank& rank, const Strategy& strategy);

}  // namespace trainctl
