// dense: a fully connected layer over the last dimension.
#pragma once

#include "core/layers/activations.h"
#include "core/layers/initializers.h"
#include "core/layers/layer.h"

namespace trainctl {

struct DenseOptions final : ChainedLayer {
  std::int64_t units = 0;
  ActivationChoice activation{"linear"};
  bool use_bias = true;
  InitializerChoice kernel_initializer{"glorot_uniform"};
  InitializerChoice bias_initializer{"zeros"};

  static Keys<DenseOptions> keys();
  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override;
  const Choice* final_activation() const override { return &activation; }
};

}  // namespace trainctl
