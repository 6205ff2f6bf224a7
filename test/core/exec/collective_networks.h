// Small networks whose ranks meet in collectives, with their gradients checked against matrices in float64.
#pragma once

#include "core/exec/collectives.h"

namespace trainctl::collective_networks {

// Runs the networks that so many ranks can play, forward and backward, on this rank. Throws where a gradient is not
// what it should be.
void run_all(Backend& backend, Communicator& world);

}  // namespace trainctl::collective_networks
