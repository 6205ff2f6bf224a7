// Recomputation: activations inside a block are recomputed for the backward pass instead of being kept (Chen et al.,
// 2016: Training Deep Nets with Sublinear Memory Cost).
#pragma once

#include "core/program/program.h"
#include "parallel/strategies/strategy.h"

namespace trainctl {

// Inserts the forward ops of a block before the first op of each backward segment that reads their outputs. The results
// are bitwise equal: the same ops run on the same values, running statistics are updated by the first pass only, and
// dropout masks are a function of the step and the sample. With `blocks` all blocks are recomputed except the last
// ones, as long as these need no more memory than the largest block during its recomputation. With `auto` the blocks in
// strategy.recomputed are recomputed. Programs without a backward pass are not changed.
Program recompute_activations(Program program, const MeshRank& rank, const Strategy& strategy);

}  // namespace trainctl
