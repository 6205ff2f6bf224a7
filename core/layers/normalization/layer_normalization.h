// layer_normalization: normalizes the last dimension; parameters gamma and beta (last dimension).
#pragma once

#include "core/layers/normalization/norm.h"

namespace trainctl {

struct LayerNormalizationOptions final : NormLayer {
  static Keys<LayerNormalizationOptions> keys();
  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override;
};

}  // namespace trainctl
