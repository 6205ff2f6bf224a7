// depthwise_conv2d: depthwise_kernel (height, width, 1, in * depth_multiplier), bias (in * depth_multiplier).
// separable_conv2d: the same kernel, then pointwise_kernel (1, 1, in * depth_multiplier, filters), bias (filters).
#include "core/layers/convolutional/depthwise.h"
#include "core/layers/images.h"
#include "core/layers/table.h"

namespace trainctl {
namespace {

struct Depthwise2d : DepthwiseOptions {
  Size2d kernel_size{0, 0};
  Size2d strides{1, 1};
  Padding padding = PaddingMode::valid;
  Size2d dilation_rate{1, 1};

 protected:
  TensorId convolve(Layer& layer, const Feature& input, bool bias) const {
    if (!is_image(layer, input)) return no_tensor;
    const Shape x = layer.shape(input);
    Window window{kernel_size, strides, dilation_rate, {}, {}};
    if (const auto wrong = resolve_padding(window, padding, {x[0], x[1]}, "kernel")) {
      layer.error(*wrong, input);
      return no_tensor;
    }
    return convolve_channels(layer, input, input.tensor, window, {kernel_size[0], kernel_size[1]}, bias);
  }
  static Shape pointwise(std::int64_t in, std::int64_t filters) { return {1, 1, in, filters}; }
  static TensorId as_output(Layer&, TensorId y) { return y; }
};

struct DepthwiseConv2dOptions final : Depthwise2d {
  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    const TensorId y = convolve(layer, inputs[0], use_bias);
    return y == no_tensor ? Feature{} : layer.output(layer.activate(y, activation));
  }
};

// Adds the keys that both layers share, except bias_initializer.
template <class O>
void add_image_keys(Keys<O>& keys) {
  std::move(keys)
      .required("kernel_size", &O::kernel_size, "Height and width of the window in pixels.", at_least(1))
      .key("strides", &O::strides, "Steps of the window down and right in pixels.", at_least(1))
      .key("padding", &O::padding,
           "same, valid, or the number of zeros at each border (above and below, left and right).", at_least(0))
      .key("dilation_rate", &O::dilation_rate, "Distance between the window's elements in pixels.", at_least(1));
  add_depthwise_keys(keys);
}

}  // namespace

Section depthwise_conv2d() {
  using O = DepthwiseConv2dOptions;
  Keys<O> keys = layer_keys<O>("depthwise_conv2d",
                               "A separate convolution of each channel of an image: activation(x * kernel + bias).");
  add_image_keys(keys);
  return std::move(keys).key("bias_initializer", &O::bias_initializer, "Initial values of the bias.");
}

Section separable_conv2d() {
  using O = Separable<Depthwise2d>;
  Keys<O> keys = layer_keys<O>("separable_conv2d",
                               "A separate convolution of each channel of an image, then a 1x1 convolution over all "
                               "channels: activation(x * depthwise_kernel * pointwise_kernel + bias).")
                     .required("filters", &O::filters, "Number of output channels.", between(1, max_channels));
  add_image_keys(keys);
  return separable_keys(std::move(keys));
}

}  // namespace trainctl
