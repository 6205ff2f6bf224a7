// dense: kernel (in, units), bias (units).
#include "core/layers/dense.h"

#include "core/graph/ops/dense.h"

namespace trainctl {

Keys<DenseOptions> DenseOptions::keys() {
  using O = DenseOptions;
  return layer_keys<O>("dense",
                       "A fully connected layer: activation(x kernel + bias), on the last dimension of its input.")
      .required("units", &O::units, "Number of outputs.", between(1, most_channels))
      .key("activation", &O::activation, "What is applied to the outputs.")
      .key("use_bias", &O::use_bias, "Whether a bias is added.")
      .key("kernel_initializer", &O::kernel_initializer, "How the kernel begins.")
      .key("bias_initializer", &O::bias_initializer, "How the bias begins.")
      .shorthand("units");
}

Feature DenseOptions::expand(Layer& layer, const std::vector<Feature>& inputs) const {
  const Shape x = layer.shape(inputs[0]);
  const Shape kernel{x.back(), units};
  std::vector<TensorId> operands{inputs[0].tensor};
  operands.push_back(layer.parameter("kernel", kernel, make_initializer(kernel_initializer, kernel), true));
  if (use_bias)
    operands.push_back(layer.parameter("bias", {units}, make_initializer(bias_initializer, {units}), false));
  return layer.output(layer.activate(layer.op(std::make_shared<Dense>(), operands)[0], activation));
}

}  // namespace trainctl
