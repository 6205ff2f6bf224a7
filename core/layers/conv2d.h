// conv2d: a convolution over images.
#pragma once

#include "core/layers/activations.h"
#include "core/layers/initializers.h"
#include "core/layers/layer.h"
#include "core/layers/window.h"

namespace trainctl {

struct Conv2dOptions final : ChainedLayer {
  std::int64_t filters = 0;
  Size2d kernel_size{0, 0};
  Size2d strides{1, 1};
  Padding padding = PaddingMode::valid;
  Size2d dilation_rate{1, 1};
  std::int64_t groups = 1;
  ActivationChoice activation{"linear"};
  bool use_bias = true;
  InitializerChoice kernel_initializer{"glorot_uniform"};
  InitializerChoice bias_initializer{"zeros"};

  static Keys<Conv2dOptions> keys();
  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override;
  const Choice* final_activation() const override { return &activation; }
};

}  // namespace trainctl
