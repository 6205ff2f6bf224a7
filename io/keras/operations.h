// Keras' operations that are no layers, x * 0.5 + y, as layers of a config.
#pragma once

#include <string>

#include "io/keras/layers.h"
#include "io/keras/network.h"

namespace trainctl {

// Whether the JSON is that of an operation on tensors: Keras 3's, or Keras 2's TFOpLambda.
bool is_operation(const Json& layer);

// Translates arithmetic with numbers or tensors, and activation functions. Everything else is reported, with what the
// operation computes.
Translation translate_operation(const LayerUse& use, const std::string& path, Reader& reader);

}  // namespace trainctl
