// The base of layer_normalization and group_normalization: an optional gamma and beta, with their keys.
#pragma once

#include "core/graph/ops/normalization/norm.h"
#include "core/layers/initializers.h"
#include "core/layers/layer.h"

namespace trainctl {

struct NormLayer : ChainedLayer {
  double epsilon = 1e-3;
  bool center = true;
  bool scale = true;
  InitializerChoice beta_initializer{"zeros"};
  InitializerChoice gamma_initializer{"ones"};

  MaskUse mask_use() const override { return MaskUse::keeps; }

 protected:
  NormAttributes attributes() const { return {static_cast<float>(epsilon), scale, center}; }
  // Normalises the input by the op `norm`, with one gamma and one beta for each element of the last dimension.
  Feature normalise(Layer& layer, const Feature& input, std::shared_ptr<const OpDef> norm) const {
    const Shape channels{layer.shape(input).back()};
    std::vector<TensorId> operands{input.tensor};
    if (scale) {
      operands.push_back(layer.parameter("gamma", channels, make_initializer(gamma_initializer, channels), false));
    }
    if (center) {
      operands.push_back(layer.parameter("beta", channels, make_initializer(beta_initializer, channels), false));
    }
    return layer.output(layer.op(std::move(norm), operands, {"mean", "rstd"})[0]);
  }
};

// Adds the keys of a NormLayer, which follow the keys of the layer itself.
template <class O>
Keys<O> norm_keys(Keys<O>&& keys) {
  return std::move(keys)
      .key("epsilon", &O::epsilon, "Added to the variance.", more_than(0))
      .key("center", &O::center, "Whether beta is added.")
      .key("scale", &O::scale, "Whether the values are scaled by gamma.")
      .key("beta_initializer", &O::beta_initializer, "Initial values of beta.")
      .key("gamma_initializer", &O::gamma_initializer, "Initial values of gamma.");
}

}  // namespace trainctl
