// max_pooling2d, average_pooling2d, global_max_pooling2d, global_average_pooling2d; and the functions that pooling over
// sequences shares with them.
#pragma once

#include "core/graph/ops/images/pool2d.h"
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

template <PoolMode mode>
struct GlobalPooling2dOptions final : ChainedLayer {
  static Keys<GlobalPooling2dOptions> keys();
  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override;
};

using GlobalMaxPooling2dOptions = GlobalPooling2dOptions<PoolMode::max>;
using GlobalAveragePooling2dOptions = GlobalPooling2dOptions<PoolMode::average>;

// Pools images [N, H, W, C] that the layer made from `input`; `window` has no padding yet. Returns no_tensor after
// reporting that the window does not fit.
TensorId pool(Layer& layer, const Feature& input, TensorId images, PoolMode mode, Window window,
              const Padding& padding);
// Returns the largest value or the mean of each channel of such images, [N, C]; no_tensor after reporting that the
// images are too large.
TensorId pool_globally(Layer& layer, const Feature& input, TensorId images, PoolMode mode);

}  // namespace trainctl
