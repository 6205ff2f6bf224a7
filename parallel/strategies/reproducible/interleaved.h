// Reproducible mode where replicas share gradients (`shard: gradients` and `shard: parameters`).
#pragma once

#include "core/program/program.h"
#include "parallel/strategies/strategy.h"

namespace trainctl {

// Adds the leaves of a round, one of each replica, in that round's micro-batch, since no replica keeps whole gradients.
// Behind its last gradient each bucket is exchanged (all_to_all), and each replica adds its part of what it received to
// a stack of sums (sums_of_rounds), whose places are slots of the gradients' region: a replica holds as many parts as
// the tree has levels at most. Losses, metrics and statistics are added likewise, and gathered behind the last round.
// The program has buckets of shared gradients in its slot; replicas hold leaves in turn (LogicalShards::interleaved).
Program add_interleaved(Program program, const MeshRank& rank, const Strategy& strategy);

}  // namespace trainctl
