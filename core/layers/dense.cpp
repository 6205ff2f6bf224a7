// dense: kernel (in, units), bias (units).
#include "core/layers/dense.h"

#include "core/graph/ops/dense.h"

namespace trainctl {

Keys<DenseOptions> DenseOptions::keys() {
  using O = DenseOptions;
  return linear_keys(
             layer_keys<O>("dense",
                           "A fully connected layer over the last dimension of its input: activation(x kernel + bias).")
                 .required("units", &O::units, "Number of outputs.", between(1, max_channels)))
      .shorthand("units");
}

Feature DenseOptions::expand(Layer& layer, const std::vector<Feature>& inputs) const {
  const auto ids = operands(layer, inputs[0].tensor, {layer.shape(inputs[0]).back(), units}, units);
  return layer.output(layer.activate(layer.op(std::make_shared<Dense>(), ids)[0], activation));
}

}  // namespace trainctl
