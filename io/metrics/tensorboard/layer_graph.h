// The graph of a network's layers, as TensorBoard draws it.
#pragma once

#include <string>

#include "core/layers/model/model.h"

namespace trainctl {

// A tensorflow.GraphDef as bytes: a node for each layer and each input of the network, with the layer's kind, the shape
// of a sample of its output and the number of its parameters, and an edge from each layer to those that read its
// output. Slashes in names make groups.
std::string layer_graph(const ModelOptions& model, const std::vector<ModelInput>& inputs);

}  // namespace trainctl
