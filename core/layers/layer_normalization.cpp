// layer_normalization: normalizes the last dimension; parameters gamma and beta (last dimension).
#include "core/graph/ops/layer_norm.h"
#include "core/layers/initializers.h"
#include "core/layers/layer.h"
#include "core/layers/table.h"

namespace trainctl {
namespace {

struct LayerNormalizationOptions final : ChainedLayer {
  double epsilon = 1e-3;
  bool center = true;
  bool scale = true;
  InitializerChoice beta_initializer{"zeros"};
  InitializerChoice gamma_initializer{"ones"};

  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    const Shape channels{layer.shape(inputs[0]).back()};
    std::vector<TensorId> operands{inputs[0].tensor};
    if (scale) {
      operands.push_back(layer.parameter("gamma", channels, make_initializer(gamma_initializer, channels), false));
    }
    if (center) {
      operands.push_back(layer.parameter("beta", channels, make_initializer(beta_initializer, channels), false));
    }
    const LayerNormAttributes attributes{static_cast<float>(epsilon), scale, center};
    return layer.output(layer.op(std::make_shared<LayerNorm>(attributes), operands, {"mean", "rstd"})[0]);
  }
};

}  // namespace

Section layer_normalization() {
  using O = LayerNormalizationOptions;
  return layer_keys<O>(
             "layer_normalization",
             "The last dimension of each sample to mean 0 and variance 1, then scaled by gamma and shifted by "
             "beta.")
      .key("epsilon", &O::epsilon, "Added to the variance.", more_than(0))
      .key("center", &O::center, "Whether beta is added.")
      .key("scale", &O::scale, "Whether gamma scales.")
      .key("beta_initializer", &O::beta_initializer, "How beta begins.")
      .key("gamma_initializer", &O::gamma_initializer, "How gamma begins.");
}

}  // namespace trainctl
