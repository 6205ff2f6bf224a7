// Data parallelism: every rank holds all parameters and computes a share of each batch; gradients are summed over the
// ranks.
#pragma once

#include "core/program/program.h"
#include "parallel/strategies/strategy.h"

namespace trainctl {

// Sums the gradients over the data axis, in the order of the flat layout. With overlap, each bucket but the last is
// reduced after the op that completes its last gradient, in the last micro-batch's backward segment (a copy named
// "backward_last" if earlier micro-batches run the same segment). The update then reduces the last bucket and waits for
// all buckets. Without overlap, the update reduces one bucket with all gradients. Gradients that are communicated as
// bfloat16 (rounded.h) are reduced bucket by bucket: with overlap all in that backward segment, without overlap in the
// update. Programs without an update, meshes with one replica and sharded updates (sharded.h) are not changed.
Program reduce_gradients(Program program, const MeshRank& rank, const Strategy& strategy);

}  // namespace trainctl
