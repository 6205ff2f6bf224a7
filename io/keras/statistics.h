// The mean and variance that Keras' Normalization layers have measured by `adapt`.
#pragma once

#include <string>
#include <vector>

#include "io/keras/layers.h"
#include "io/keras/network.h"

namespace trainctl {

// Adds them from the weights in the saved network's file to the layers' options, which lack them unless the user stated
// them. Returns patterns of the tensors that are thereby dealt with. Layers of which the file has none are reported.
std::vector<std::string> add_statistics(const std::string& path, const KerasNetwork& network,
                                        std::vector<Translation>& translations, Reader& reader);

}  // namespace trainctl
