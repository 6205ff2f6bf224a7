// Layers with one input and without parameters: activation, flatten.
#pragma once

#include "core/layers/activations.h"
#include "core/layers/layer.h"

namespace trainctl {

struct ActivationLayerOptions final : ChainedLayer {
  ActivationChoice activation;

  static Keys<ActivationLayerOptions> keys();
  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override;
  MaskUse mask_use() const override { return MaskUse::keeps; }
  const Choice* final_activation() const override { return &activation; }
};

struct FlattenOptions final : ChainedLayer {
  static Keys<FlattenOptions> keys();
  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override;
};

}  // namespace trainctl
