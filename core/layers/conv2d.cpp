// conv2d: kernel (height, width, in / groups, filters), bias (filters).
#include "core/layers/conv2d.h"

#include "core/base/format.h"
#include "core/graph/ops/conv2d.h"

namespace trainctl {

Keys<Conv2dOptions> Conv2dOptions::keys() {
  using O = Conv2dOptions;
  return layer_keys<O>("conv2d", "A convolution over images: activation(x * kernel + bias).")
      .required("filters", &O::filters, "Number of output channels.", between(1, most_channels))
      .required("kernel_size", &O::kernel_size, "Height and width of the window, pixels.", at_least(1))
      .key("strides", &O::strides, "Steps of the window down and right, pixels.", at_least(1))
      .key("padding", &O::padding, "same, valid, or pixels of zeros at each border (down, right).", at_least(0))
      .key("dilation_rate", &O::dilation_rate, "Distance of the window's elements, pixels.", at_least(1))
      .key("groups", &O::groups, "Groups of channels that are convolved apart.", at_least(1))
      .key("activation", &O::activation, "What is applied to the outputs.")
      .key("use_bias", &O::use_bias, "Whether a bias is added.")
      .key("kernel_initializer", &O::kernel_initializer, "How the kernel begins.")
      .key("bias_initializer", &O::bias_initializer, "How the bias begins.");
}

Feature Conv2dOptions::expand(Layer& layer, const std::vector<Feature>& inputs) const {
  const Shape x = layer.shape(inputs[0]);
  if (x.rank() != 3) {
    return layer.error(format("input {} is no image (height, width, channels)", to_string(x)), inputs[0]);
  }
  // Wrong groups are reported, and do not change the output's shape: the layers behind are still checked.
  std::int64_t parts = groups;
  for (const auto& [count, what] : {std::pair{x[2], "input channels"}, {filters, "filters"}}) {
    if (count % groups == 0) continue;
    layer.error(format("groups {} does not divide {} {}", groups, count, what), inputs[0]);
    parts = 1;
  }
  Window window{kernel_size, strides, dilation_rate, {}, {}};
  if (const auto wrong = resolve_padding(window, padding, {x[0], x[1]}, "kernel")) {
    return layer.error(*wrong, inputs[0]);
  }
  const Shape kernel{kernel_size[0], kernel_size[1], x[2] / parts, filters};
  std::vector<TensorId> operands{inputs[0].tensor};
  operands.push_back(layer.parameter("kernel", kernel, make_initializer(kernel_initializer, kernel), true));
  if (use_bias) {
    operands.push_back(layer.parameter("bias", {filters}, make_initializer(bias_initializer, {filters}), false));
  }
  return layer.output(layer.activate(layer.op(std::make_shared<Conv2d>(window, parts), operands)[0], activation));
}

}  // namespace trainctl
