// Translates Keras' operations that are not layers, such as x * 0.5 + y, to layers of a config.
#pragma once

#include <string>

#include "io/keras/layers.h"
#include "io/keras/network.h"

namespace trainctl {

// Whether the JSON is an operation on tensors: of Keras 3, or TFOpLambda of Keras 2.
bool is_operation(const Json& layer);

// Translates arithmetic with numbers or tensors, and activation functions. Any other operation is reported with its
// name and arguments.
Translation translate_operation(const LayerUse& use, const std::string& path, Reader& reader);

}  // namespace trainctl
