// Data parallelism: every rank holds all parameters and a share of each batch; gradients are summed over the ranks.
#pragma once

#include "core/program/program.h"
#include "parallel/strategies/strategy.h"

namespace trainctl {

// Sums the gradients over the data axis, in the order of the flat layout. With overlap, each bucket is reduced behind
// the op that finishes its last gradient, in the last micro-batch's backward segment ("backward_last" where earlier
// micro-batches run the same one), all but the last bucket, which the update reduces before it waits for all of them;
// without, the update reduces one bucket that holds everything. Gradients that travel as bfloat16 (rounded.h) are all
// reduced in that backward segment with overlap, and without in the update, bucket by bucket. Programs without an
// update, meshes with one replica and shared updates (sharded.h) stay as they are.
Program reduce_gradients(Program program, const MeshRank& rank, const Strategy& strategy);

}  // namespace trainctl
