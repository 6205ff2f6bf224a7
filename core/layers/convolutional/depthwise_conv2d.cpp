// depthwise_conv2d: depthwise_kernel (height, width, 1, in * depth_multiplier), bias (in * depth_multiplier).
// separable_conv2d: the same kernel, then pointwise_kernel (1, 1, in * depth_multiplier, filters), bias (filters).
//
// Keras' depthwise kernel is (height, width, in, depth_multiplier), with its elements in the same order.
#include <optional>

#include "core/base/format.h"
#include "core/graph/ops/images/convolution.h"
#include "core/layers/activations.h"
#include "core/layers/images.h"
#include "core/layers/initializers.h"
#include "core/layers/regularizers.h"
#include "core/layers/table.h"
#include "core/layers/window.h"

namespace trainctl {
namespace {

struct DepthwiseOptions : ChainedLayer {
  Size2d kernel_size{0, 0};
  Size2d strides{1, 1};
  Padding padding = PaddingMode::valid;
  Size2d dilation_rate{1, 1};
  std::int64_t depth_multiplier = 1;
  ActivationChoice activation{"linear"};
  bool use_bias = true;
  InitializerChoice depthwise_initializer{"glorot_uniform"};
  InitializerChoice bias_initializer{"zeros"};
  RegularizerChoice depthwise_regularizer, bias_regularizer;

  const Choice* final_activation() const override { return &activation; }

 protected:
  // Convolves each channel separately, with or without a bias. Returns no_tensor after reporting an error.
  TensorId convolve_channels(Layer& layer, const Feature& input, bool bias) const {
    if (!is_image(layer, input)) return no_tensor;
    const Shape x = layer.shape(input);
    Window window{kernel_size, strides, dilation_rate, {}, {}};
    auto wrong = resolve_padding(window, padding, {x[0], x[1]}, "kernel");
    const std::int64_t out = checked_multiply(x[2], depth_multiplier);
    if (!wrong && static_cast<double>(out) > max_channels) {
      wrong = format("{} input channels times depth_multiplier {} are more than {:.0f} channels", x[2],
                     depth_multiplier, max_channels);
    }
    if (wrong) {
      layer.error(*wrong, input);
      return no_tensor;
    }
    const Shape keras{kernel_size[0], kernel_size[1], x[2], depth_multiplier};
    const Shape kernel{kernel_size[0], kernel_size[1], 1, out};
    const Initializer initializer = make_initializer(depthwise_initializer, keras);
    std::vector<TensorId> operands{input.tensor};
    operands.push_back(
        layer.parameter("depthwise_kernel", kernel, initializer, true, penalty_of(depthwise_regularizer)));
    if (bias) operands.push_back(bias_of(layer, out));
    return layer.op(std::make_shared<Conv2d>(window, x[2]), operands)[0];
  }
  TensorId bias_of(Layer& layer, std::int64_t channels) const {
    return layer.parameter("bias", {channels}, make_initializer(bias_initializer, {channels}), false,
                           penalty_of(bias_regularizer));
  }
};

struct DepthwiseConv2dOptions final : DepthwiseOptions {
  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    const TensorId y = convolve_channels(layer, inputs[0], use_bias);
    return y == no_tensor ? Feature{} : layer.output(layer.activate(y, activation));
  }
};

struct SeparableConv2dOptions final : DepthwiseOptions {
  std::int64_t filters = 0;
  InitializerChoice pointwise_initializer{"glorot_uniform"};
  RegularizerChoice pointwise_regularizer;

  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    const TensorId depthwise = convolve_channels(layer, inputs[0], false);
    if (depthwise == no_tensor) return {};
    const Shape kernel{1, 1, layer.shape(layer.output(depthwise)).back(), filters};
    const Initializer initializer = make_initializer(pointwise_initializer, kernel);
    std::vector<TensorId> operands{depthwise};
    operands.push_back(
        layer.parameter("pointwise_kernel", kernel, initializer, true, penalty_of(pointwise_regularizer)));
    if (use_bias) operands.push_back(bias_of(layer, filters));
    const TensorId y = layer.op(std::make_shared<Conv2d>(Window{}, 1), operands)[0];
    return layer.output(layer.activate(y, activation));
  }
};

// Adds the keys that both layers share, except bias_initializer.
template <class O>
void add_keys(Keys<O>& keys) {
  std::move(keys)
      .required("kernel_size", &O::kernel_size, "Height and width of the window in pixels.", at_least(1))
      .key("strides", &O::strides, "Steps of the window down and right in pixels.", at_least(1))
      .key("padding", &O::padding,
           "same, valid, or the number of zeros at each border (above and below, left and right).", at_least(0))
      .key("dilation_rate", &O::dilation_rate, "Distance between the window's elements in pixels.", at_least(1))
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

}  // namespace

Section depthwise_conv2d() {
  using O = DepthwiseConv2dOptions;
  Keys<O> keys = layer_keys<O>("depthwise_conv2d",
                               "A separate convolution of each channel of an image: activation(x * kernel + bias).");
  add_keys(keys);
  return std::move(keys).key("bias_initializer", &O::bias_initializer, "Initial values of the bias.");
}

Section separable_conv2d() {
  using O = SeparableConv2dOptions;
  Keys<O> keys = layer_keys<O>("separable_conv2d",
                               "A separate convolution of each channel of an image, then a 1x1 convolution over all "
                               "channels: activation(x * depthwise_kernel * pointwise_kernel + bias).")
                     .required("filters", &O::filters, "Number of output channels.", between(1, max_channels));
  add_keys(keys);
  return std::move(keys)
      .key("pointwise_initializer", &O::pointwise_initializer, "Initial values of the pointwise kernel.")
      .key("pointwise_regularizer", &O::pointwise_regularizer, "A penalty on the pointwise kernel.")
      .key("bias_initializer", &O::bias_initializer, "Initial values of the bias.");
}

}  // namespace trainctl
