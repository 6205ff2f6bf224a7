// The options and steps that depthwise and separable convolutions over images and over sequences share.
#pragma once

#include <optional>
#include <utility>

#include "core/base/format.h"
#include "core/graph/ops/images/convolution.h"
#include "core/layers/activations.h"
#include "core/layers/initializers.h"
#include "core/layers/layer.h"
#include "core/layers/regularizers.h"
#include "core/layers/window.h"

namespace trainctl {

// The options of all of these layers.
struct DepthwiseOptions : ChainedLayer {
  std::int64_t depth_multiplier = 1;
  ActivationChoice activation{"linear"};
  bool use_bias = true;
  InitializerChoice depthwise_initializer{"glorot_uniform"};
  InitializerChoice bias_initializer{"zeros"};
  RegularizerChoice depthwise_regularizer, bias_regularizer;

  const Choice* final_activation() const override { return &activation; }

 protected:
  // Convolves each channel of images x separately, with or without a bias. `kernel`: the sizes of the kernel without
  // channels. Returns no_tensor after reporting an error.
  TensorId convolve_channels(Layer& layer, const Feature& input, TensorId x, const Window& window, const Shape& kernel,
                             bool bias) const {
    const std::int64_t in = layer.shape(input).back(), out = checked_multiply(in, depth_multiplier);
    if (static_cast<double>(out) > max_channels) {
      layer.error(format("{} input channels times depth_multiplier {} are more than {:.0f} channels", in,
                         depth_multiplier, max_channels),
                  input);
      return no_tensor;
    }
    // Keras' kernel is (..., in, depth_multiplier), with its elements in the same order.
    const Initializer initializer =
        make_initializer(depthwise_initializer, kernel.with_appended(in).with_appended(depth_multiplier));
    std::vector<TensorId> operands{x};
    operands.push_back(layer.parameter("depthwise_kernel", kernel.with_appended(1).with_appended(out), initializer,
                                       true, penalty_of(depthwise_regularizer)));
    if (bias) operands.push_back(bias_of(layer, out));
    return layer.op(std::make_shared<Conv2d>(window, in), operands)[0];
  }
  TensorId bias_of(Layer& layer, std::int64_t channels) const {
    return layer.parameter("bias", {channels}, make_initializer(bias_initializer, {channels}), false,
                           penalty_of(bias_regularizer));
  }
};

// A depthwise convolution, then one over all channels of each pixel or step.
template <class Depthwise>
struct Separable final : Depthwise {
  std::int64_t filters = 0;
  InitializerChoice pointwise_initializer{"glorot_uniform"};
  RegularizerChoice pointwise_regularizer;

  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    const TensorId depthwise = this->convolve(layer, inputs[0], false);
    if (depthwise == no_tensor) return {};
    const Shape kernel = Depthwise::pointwise(layer.shape(layer.output(depthwise)).back(), filters);
    const Initializer initializer = make_initializer(pointwise_initializer, kernel);
    std::vector<TensorId> operands{depthwise};
    operands.push_back(
        layer.parameter("pointwise_kernel", kernel, initializer, true, penalty_of(pointwise_regularizer)));
    if (this->use_bias) operands.push_back(this->bias_of(layer, filters));
    const TensorId y = layer.op(std::make_shared<Conv2d>(Window{}, 1), operands)[0];
    return layer.output(Depthwise::as_output(layer, layer.activate(y, this->activation)));
  }
};

// Adds the keys that all of these layers have after those of the window, except bias_initializer.
template <class O>
void add_depthwise_keys(Keys<O>& keys) {
  std::move(keys)
      .key("depth_multiplier", &O::depth_multiplier,
           "Number of output channels for each input channel; the output channels of channel c begin at c * "
           "depth_multiplier.",
           between(1, max_channels))
      .key("activation", &O::activation, "Activation of the outputs.")
      .key("use_bias", &O::use_bias, "Whether a bias is added.")
      .key("depthwise_initializer", &O::depthwise_initializer, "Initial values of the depthwise kernel.")
      .key("depthwise_regularizer", &O::depthwise_regularizer, "A penalty on the depthwise kernel.")
      .key("bias_regularizer", &O::bias_regularizer, "A penalty on the bias.");
}

// Adds the keys that only the separable layers have, and bias_initializer.
template <class O>
Section separable_keys(Keys<O> keys) {
  return std::move(keys)
      .key("pointwise_initializer", &O::pointwise_initializer, "Initial values of the pointwise kernel.")
      .key("pointwise_regularizer", &O::pointwise_regularizer, "A penalty on the pointwise kernel.")
      .key("bias_initializer", &O::bias_initializer, "Initial values of the bias.");
}

}  // namespace trainctl
