// Recomputation: activations inside a block are computed again for the backward pass instead of being kept (Chen et
// al., 2016: Training Deep Nets with Sublinear Memory Cost).
#pragma once

#include "core/program/program.h"
#include "parallel/strategies/strategy.h"

namespace trainctl {

// Puts the forward ops of a block in front of the first op of each backward segment that reads what they compute. The
// results are the same bit for bit: the same ops run on the same values, running statistics take the first pass's, and
// dropout's masks are a function of the step and the sample. With `blocks` all blocks are computed again but for the
// last ones, as far as they take no more memory than the largest one does when its turn comes; with `auto` those of
// strategy.recomputed. Programs without a backward pass stay as they are.
Program recompute_activations(Program program, const MeshRank& rank, const Strategy& strategy);

}  // namespace trainctl
