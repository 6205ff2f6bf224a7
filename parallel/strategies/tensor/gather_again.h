// Gathers positions again for the backward pass, instead of keeping the gathered activations in memory.
#pragma once

#include "core/program/program.h"
#include "parallel/strategies/strategy.h"

namespace trainctl {

// Returns whether an op of the forward pass gathers positions for layers that the ranks share, so that gather_again()
// gathers them again.
bool gathers_positions(const Op& op);

// With sequence parallelism, the ranks of the tensor axis gather the positions of an activation before the layers that
// they share (Korthikanti et al., 2022). If the backward pass reads the gathered activation, in a gradient or in an op
// that is recomputed, the ranks gather it again before the first op that reads it, so that only each rank's positions
// stay in memory between the passes.
Program gather_again(Program program, const MeshRank& rank, const Strategy& strategy);

}  // namespace trainctl
