// Computes cheap results of the forward pass again in the backward pass, so that they need not stay in memory between.
#pragma once

#include "core/program/program.h"

namespace trainctl {

// Repeats activations, gated linear units and layer normalizations before the first op of the backward pass that reads
// their results, if these ops take so much longer that the repetition hardly counts, as products with large matrices
// do. The results have at least 1 MiB in float32, and their inputs are in memory at that time anyway. A step's results
// keep their bits, since the same kernels read the same values.
void recompute_cheap_values(Program& program);

}  // namespace trainctl
