// Runs small networks with collectives and compares their gradients with matrices in float64.
#pragma once

#include "core/exec/collectives.h"

namespace trainctl::collective_networks {

// Runs this rank's share of all networks that are possible with the number of ranks, forward and backward. Throws if a
// gradient is wrong.
void run_all(Backend& backend, Communicator& world);

}  // namespace trainctl::collective_networks
