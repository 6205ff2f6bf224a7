// conv2d: kernel (height, width, in / groups, filters), bias (filters).
#include "core/layers/convolutional/conv2d.h"

#include "core/base/format.h"
#include "core/graph/ops/images/conv2d.h"
#include "core/layers/images.h"

namespace trainctl {

Keys<Conv2dOptions> Conv2dOptions::keys() {
  using O = Conv2dOptions;
  return linear_keys(
      layer_keys<O>("conv2d", "A convolution over images: activation(x * kernel + bias).")
          .required("filters", &O::filters, "Number of output channels.", between(1, max_channels))
          .required("kernel_size", &O::kernel_size, "Height and width of the window in pixels.", at_least(1))
          .key("strides", &O::strides, "Steps of the window down and right in pixels.", at_least(1))
          .key("padding", &O::padding,
               "same, valid, or the number of zeros at each border (above and below, left and right).", at_least(0))
          .key("dilation_rate", &O::dilation_rate, "Distance between the window's elements in pixels.", at_least(1))
          .key("groups", &O::groups, "Number of groups of channels; each group is convolved separately.", at_least(1)));
}

std::int64_t checked_groups(Layer& layer, const Feature& input, std::int64_t groups, std::int64_t filters) {
  std::int64_t divisor = groups;
  for (const auto& [count, what] : {std::pair{layer.shape(input).back(), "input channels"}, {filters, "filters"}}) {
    if (count % groups == 0) continue;
    layer.error(format("groups {} does not divide {} {}", groups, count, what), input);
    divisor = 1;
  }
  return divisor;
}

Feature Conv2dOptions::expand(Layer& layer, const std::vector<Feature>& inputs) const {
  if (!is_image(layer, inputs[0])) return {};
  const Shape x = layer.shape(inputs[0]);
  const std::int64_t divisor = checked_groups(layer, inputs[0], groups, filters);
  Window window{kernel_size, strides, dilation_rate, {}, {}};
  if (const auto wrong = resolve_padding(window, padding, {x[0], x[1]}, "kernel")) {
    return layer.error(*wrong, inputs[0]);
  }
  const Shape shape{kernel_size[0], kernel_size[1], x[2] / divisor, filters};
  const auto ids = operands(layer, inputs[0].tensor, shape, filters);
  return layer.output(layer.activate(layer.op(std::make_shared<Conv2d>(window, divisor), ids)[0], activation));
}

}  // namespace trainctl
