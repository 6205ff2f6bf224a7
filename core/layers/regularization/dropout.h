// dropout: sets values, channels or samples to zero at random, only in training.
#pragma once

#include "core/layers/layer.h"

namespace trainctl {

struct DropoutOptions final : ChainedLayer {
  double rate = 0;
  std::vector<std::int64_t> noise_shape;

  static Keys<DropoutOptions> keys();
  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override;
  bool changes_values_alone() const override { return noise_shape.empty(); }
  MaskUse mask_use() const override { return MaskUse::keeps; }
};

}  // namespace trainctl
