// batch_normalization: normalizes each channel over the batch and all other dimensions.
#pragma once

#include "core/layers/initializers.h"
#include "core/layers/layer.h"

namespace trainctl {

struct BatchNormalizationOptions final : ChainedLayer {
  double momentum = 0.99;
  double epsilon = 1e-3;
  bool center = true;
  bool scale = true;
  bool synchronized = false;
  InitializerChoice beta_initializer{"zeros"};
  InitializerChoice gamma_initializer{"ones"};

  static Keys<BatchNormalizationOptions> keys();
  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override;
};

}  // namespace trainctl
