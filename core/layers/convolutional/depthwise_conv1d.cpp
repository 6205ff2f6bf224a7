// depthwise_conv1d: depthwise_kernel (length, 1, in * depth_multiplier), bias (in * depth_multiplier).
// separable_conv1d: the same kernel, then pointwise_kernel (1, in * depth_multiplier, filters), bias (filters). Both
// are computed as convolutions over images one pixel high.
#include "core/layers/convolutional/depthwise.h"
#include "core/layers/convolutional/sequence_padding.h"
#include "core/layers/images.h"
#include "core/layers/table.h"

namespace trainctl {
namespace {

struct Depthwise1d : DepthwiseOptions {
  std::int64_t kernel_size = 0;
  std::int64_t strides = 1;
  SequencePadding padding = SequencePadding::valid;
  std::int64_t dilation_rate = 1;

 protected:
  TensorId convolve(Layer& layer, const Feature& input, bool bias) const {
    if (!is_sequence(layer, input)) return no_tensor;
    const auto [window, wrong] = sequence_window(kernel_size, strides, dilation_rate, padding, layer.shape(input)[0]);
    if (wrong) {
      layer.error(*wrong, input);
      return no_tensor;
    }
    return convolve_channels(layer, input, as_images(layer, input), window, {kernel_size}, bias);
  }
  static Shape pointwise(std::int64_t in, std::int64_t filters) { return {1, in, filters}; }
  static TensorId as_output(Layer& layer, TensorId y) { return as_sequences(layer, y); }
};

struct DepthwiseConv1dOptions final : Depthwise1d {
  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    const TensorId y = convolve(layer, inputs[0], use_bias);
    return y == no_tensor ? Feature{} : layer.output(as_sequences(layer, layer.activate(y, activation)));
  }
};

// Adds the keys that both layers share, except bias_initializer.
template <class O>
void add_sequence_keys(Keys<O>& keys) {
  std::move(keys)
      .required("kernel_size", &O::kernel_size, "Length of the window in steps.", at_least(1))
      .key("strides", &O::strides, "Steps from window to window.", at_least(1))
      .key("padding", &O::padding, sequence_padding_meaning)
      .key("dilation_rate", &O::dilation_rate, "Distance between the window's elements in steps.", at_least(1));
  add_depthwise_keys(keys);
}

}  // namespace

Section depthwise_conv1d() {
  using O = DepthwiseConv1dOptions;
  Keys<O> keys =
      layer_keys<O>("depthwise_conv1d",
                    "A separate convolution of each channel of a sequence (steps, channels): activation(x * kernel + "
                    "bias).");
  add_sequence_keys(keys);
  return std::move(keys).key("bias_initializer", &O::bias_initializer, "Initial values of the bias.");
}

Section separable_conv1d() {
  using O = Separable<Depthwise1d>;
  Keys<O> keys = layer_keys<O>("separable_conv1d",
                               "A separate convolution of each channel of a sequence (steps, channels), then a dense "
                               "layer at each step: activation(x * depthwise_kernel * pointwise_kernel + bias).")
                     .required("filters", &O::filters, "Number of output channels.", between(1, max_channels));
  add_sequence_keys(keys);
  return separable_keys(std::move(keys));
}

}  // namespace trainctl
