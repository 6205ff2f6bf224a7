// Converts the layers of a network to a graph that TensorBoard draws.
#pragma once

#include <string>

#include "core/layers/model/model.h"

namespace trainctl {

// Returns the bytes of a tensorflow.GraphDef. It has a node for each layer and each input of the network; the node
// contains the layer's kind, the shape of its output for a sample and the number of its parameters. An edge leads from
// each layer to every layer that reads its output. Slashes in names make groups.
std::string layer_graph(const ModelOptions& model, const std::vector<ModelInput>& inputs);

}  // namespace trainctl
