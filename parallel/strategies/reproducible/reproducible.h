// Reproducible mode: gradients and sums are added in an order that does not depend on the ranks.
#pragma once

#include "core/program/program.h"
#include "parallel/strategies/strategy.h"

namespace trainctl {

// Each micro-batch of a program with Program::shards is a logical shard, a leaf of the tree in tree.h. Its backward
// pass writes gradients, statistics and sums into a slot of their own, and adds them to sums of leaves before as soon
// as the leaf completes these, group by group of gradients while they are in the cache. A rank with several compute
// streams computes rounds of as many leaves side by side, and forms the sums that a round completes behind it, each
// stream a part of the groups. Replicas then exchange the sums that they formed (exchange.h): the bytes of a ring,
// where the replicas are a power of two. Training programs without logical shards, after which those of evaluation are
// laid out, get the same alignment of parameters and nothing else; programs outside of reproducible mode stay as they
// are.
Program add_in_tree(Program program, const MeshRank& rank, const Strategy& strategy);

}  // namespace trainctl
