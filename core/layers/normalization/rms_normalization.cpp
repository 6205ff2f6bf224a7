// rms_normalization: divides the last dimension by its root mean square; parameter scale (last dimension).
#include "core/graph/ops/normalization/layer_norm.h"
#include "core/layers/initializers.h"
#include "core/layers/layer.h"
#include "core/layers/table.h"

namespace trainctl {
namespace {

struct RmsNormalizationOptions final : ChainedLayer {
  double epsilon = 1e-6;
  InitializerChoice scale_initializer{"ones"};

  MaskUse mask_use() const override { return MaskUse::keeps; }

  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    const Shape channels{layer.shape(inputs[0]).back()};
    const TensorId scale = layer.parameter("scale", channels, make_initializer(scale_initializer, channels), false);
    const LayerNormAttributes attributes{{.epsilon = static_cast<float>(epsilon), .center = false}, false};
    return layer.output(
        layer.op(std::make_shared<LayerNorm>(attributes), {inputs[0].tensor, scale}, {"mean", "rstd"})[0]);
  }
};

}  // namespace

Section rms_normalization() {
  using O = RmsNormalizationOptions;
  return layer_keys<O>("rms_normalization",
                       "Divides the last dimension of each sample by the root of the mean of its squares, then "
                       "multiplies it by scale; Zhang and Sennrich (2019).")
      .key("epsilon", &O::epsilon, "Added to the mean of the squares.", more_than(0))
      .key("scale_initializer", &O::scale_initializer, "Initial values of scale.");
}

}  // namespace trainctl
