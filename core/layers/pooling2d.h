// max_pooling2d, average_pooling2d, global_average_pooling2d.
#pragma once

#include "core/graph/ops/pool2d.h"
#include "core/layers/layer.h"
#include "core/layers/window.h"

namespace trainctl {

template <PoolMode mode>
struct Pooling2dOptions final : ChainedLayer {
  Size2d pool_size{2, 2};
  std::optional<Size2d> strides;  // none: pool_size
  Padding padding = PaddingMode::valid;

  static Keys<Pooling2dOptions> keys();
  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override;
};

using MaxPooling2dOptions = Pooling2dOptions<PoolMode::max>;
using AveragePooling2dOptions = Pooling2dOptions<PoolMode::average>;

struct GlobalAveragePooling2dOptions final : ChainedLayer {
  static Keys<GlobalAveragePooling2dOptions> keys();
  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override;
};

}  // namespace trainctl
