// Lets ops that ranks run on their positions read parameters without aliases.
#pragma once

#include "core/program/program.h"
#include "parallel/strategies/strategy.h"

namespace trainctl {

// With sequence parallelism, a rank's graph reads a whole parameter through an identity, whose gradient is the sum of
// the gradients of the ranks along the tensor axis. Once the program has its gradients, the identities are not needed:
// this function removes them, and the ops read the parameters themselves.
Program read_shared_parameters(Program program, const MeshRank& rank, const Strategy& strategy);

}  // namespace trainctl
