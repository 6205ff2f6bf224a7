// layer_scale: multiplies each channel by a learned factor, parameter gamma (1, channels).
#include "core/graph/ops/elementwise/combine.h"
#include "core/graph/ops/reshaping/shaping.h"
#include "core/layers/broadcast.h"
#include "core/layers/initializers.h"
#include "core/layers/table.h"

namespace trainctl {
namespace {

struct LayerScaleOptions final : ChainedLayer {
  double init_values = 1e-6;

  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    const Shape x = layer.shape(inputs[0]), channels{1, x.back()};
    const Initializer constant{.name = "constant", .value = init_values};
    const TensorId gamma = layer.parameter("gamma", channels, constant, false);
    TensorId factors = repeat_for_samples(layer, inputs[0].tensor, gamma);
    Shape one = x;
    for (std::int64_t k = 0; k + 1 < one.rank(); ++k) one[k] = 1;
    if (one != channels) factors = layer.op(std::make_shared<Reshape>(layer.batch_of(one)), {factors})[0];
    return layer.output(layer.op(std::make_shared<MultiplyChannels>(), {inputs[0].tensor, factors})[0]);
  }
  MaskUse mask_use() const override { return MaskUse::keeps; }
};

}  // namespace

Section layer_scale() {
  using O = LayerScaleOptions;
  return layer_keys<O>("layer_scale",
                       "Multiplies each channel by a learned factor, usually at the end of a residual block, as Keras' "
                       "LayerScale; Touvron et al. (2021).")
      .key("init_values", &O::init_values, "Initial value of the factors.")
      .shorthand("init_values");
}

}  // namespace trainctl
