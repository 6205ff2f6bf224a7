// Expands layer_normalization.
#include "core/layers/normalization/layer_normalization.h"

#include "core/graph/ops/normalization/layer_norm.h"

namespace trainctl {

Keys<LayerNormalizationOptions> LayerNormalizationOptions::keys() {
  using O = LayerNormalizationOptions;
  return norm_keys(layer_keys<O>("layer_normalization",
                                 "Normalizes the last dimension of each sample to mean 0 and variance 1, then scales "
                                 "by gamma and shifts by beta."));
}

Feature LayerNormalizationOptions::expand(Layer& layer, const std::vector<Feature>& inputs) const {
  return normalise(layer, inputs[0], std::make_shared<LayerNorm>(LayerNormAttributes{attributes()}));
}

}  // namespace trainctl
