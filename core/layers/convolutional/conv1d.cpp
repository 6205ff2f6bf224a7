// conv1d: kernel (length, in / groups, filters), bias (filters); computed as a convolution over images one pixel high.
#include "core/graph/ops/images/convolution.h"
#include "core/layers/convolutional/convolution.h"
#include "core/layers/convolutional/sequence_padding.h"
#include "core/layers/images.h"
#include "core/layers/linear.h"
#include "core/layers/table.h"

namespace trainctl {

namespace {

struct Conv1dOptions final : LinearLayer {
  std::int64_t filters = 0;
  std::int64_t kernel_size = 0;
  std::int64_t strides = 1;
  SequencePadding padding = SequencePadding::valid;
  std::int64_t dilation_rate = 1;
  std::int64_t groups = 1;

  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    if (!is_sequence(layer, inputs[0])) return {};
    const Shape x = layer.shape(inputs[0]);
    const std::int64_t divisor = checked_groups(layer, inputs[0], groups, filters);
    const auto [window, wrong] = sequence_window(kernel_size, strides, dilation_rate, padding, x[0]);
    if (wrong) return layer.error(*wrong, inputs[0]);
    const Shape shape{kernel_size, x[1] / divisor, filters};
    const auto ids = operands(layer, as_images(layer, inputs[0]), shape, filters);
    const TensorId y = layer.op(std::make_shared<Conv2d>(window, divisor), ids)[0];
    return layer.output(as_sequences(layer, layer.activate(y, activation)));
  }
};

}  // namespace

Section conv1d() {
  using O = Conv1dOptions;
  return linear_keys(
      layer_keys<O>("conv1d", "A convolution over sequences (steps, channels): activation(x * kernel + bias).")
          .required("filters", &O::filters, "Number of output channels.", between(1, max_channels))
          .required("kernel_size", &O::kernel_size, "Length of the window in steps.", at_least(1))
          .key("strides", &O::strides, "Steps from window to window.", at_least(1))
          .key("padding", &O::padding, sequence_padding_meaning)
          .key("dilation_rate", &O::dilation_rate, "Distance between the window's elements in steps.", at_least(1))
          .key("groups", &O::groups, "Number of groups of channels; each group is convolved separately.", at_least(1)));
}

}  // namespace trainctl
