// Loads the weights of a network that is used without training.
#pragma once

#include "io/weights/load.h"

namespace trainctl {

// As load_weights() of load.h, for a config whose network is used as it is. Throws Error{config} that names the layers
// of which a tensor would keep its initial values.
LoadedWeights load_all_weights(const WeightsOptions& options, const Graph& graph);

}  // namespace trainctl
