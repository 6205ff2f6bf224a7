// The base of dense layers and convolutions: a kernel, a bias and an activation, with their keys.
#pragma once

#include "core/layers/activations.h"
#include "core/layers/initializers.h"
#include "core/layers/layer.h"
#include "core/layers/regularizers.h"

namespace trainctl {

struct LinearLayer : ChainedLayer {
  ActivationChoice activation{"linear"};
  bool use_bias = true;
  InitializerChoice kernel_initializer{"glorot_uniform"};
  InitializerChoice bias_initializer{"zeros"};
  RegularizerChoice kernel_regularizer, bias_regularizer;

  const Choice* final_activation() const override { return &activation; }

 protected:
  TensorId kernel(Layer& layer, const Shape& shape) const {
    return layer.parameter("kernel", shape, make_initializer(kernel_initializer, shape), true,
                           penalty_of(kernel_regularizer));
  }
  TensorId bias(Layer& layer, std::int64_t units) const {
    return layer.parameter("bias", {units}, make_initializer(bias_initializer, {units}), false,
                           penalty_of(bias_regularizer));
  }
  // Returns x, the kernel and, if the layer has one, the bias.
  std::vector<TensorId> operands(Layer& layer, TensorId x, const Shape& shape, std::int64_t units) const {
    std::vector<TensorId> ids{x, kernel(layer, shape)};
    if (use_bias) ids.push_back(bias(layer, units));
    return ids;
  }
};

// Adds the keys of a LinearLayer, which follow the keys of the layer itself.
template <class O>
Keys<O> linear_keys(Keys<O>&& keys) {
  return std::move(keys)
      .key("activation", &O::activation, "Activation of the outputs.")
      .key("use_bias", &O::use_bias, "Whether a bias is added.")
      .key("kernel_initializer", &O::kernel_initializer, "Initial values of the kernel.")
      .key("bias_initializer", &O::bias_initializer, "Initial values of the bias.")
      .key("kernel_regularizer", &O::kernel_regularizer, "A penalty on the kernel.")
      .key("bias_regularizer", &O::bias_regularizer, "A penalty on the bias.");
}

}  // namespace trainctl
