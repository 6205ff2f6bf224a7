// conv2d: kernel (height, width, in / groups, filters), bias (filters). conv3d: kernel (depth, height, width, in /
// groups, filters), bias (filters).
#include "core/layers/convolutional/convolution.h"

#include "core/base/format.h"
#include "core/graph/ops/images/convolution.h"
#include "core/layers/images.h"
#include "core/layers/volumes.h"

namespace trainctl {
namespace {

// The parts of the descriptions in which conv2d and conv3d differ.
struct Texts {
  const char *kind, *meaning, *kernel_size, *strides, *padding;
};

constexpr Texts texts_2d{"conv2d", "A convolution over images: activation(x * kernel + bias).",
                         "Height and width of the window in pixels.", "Steps of the window down and right in pixels.",
                         "same, valid, or the number of zeros at each border (above and below, left and right)."};
constexpr Texts texts_3d{
    "conv3d",
    "A convolution over volumes (depth, height, width, channels), such as scans and films: activation(x * kernel + "
    "bias).",
    "Depth, height and width of the window.", "Steps of the window along depth, height and width.",
    "same, valid, or the number of zeros at each border (in front and behind, above and below, left and right)."};

}  // namespace

template <std::size_t axes>
Keys<ConvOptions<axes>> ConvOptions<axes>::keys() {
  using O = ConvOptions;
  constexpr const Texts& texts = axes == 2 ? texts_2d : texts_3d;
  return linear_keys(
      layer_keys<O>(texts.kind, texts.meaning)
          .required("filters", &O::filters, "Number of output channels.", between(1, max_channels))
          .required("kernel_size", &O::kernel_size, texts.kernel_size, at_least(1))
          .key("strides", &O::strides, texts.strides, at_least(1))
          .key("padding", &O::padding, texts.padding, at_least(0))
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

template <std::size_t axes>
Feature ConvOptions<axes>::expand(Layer& layer, const std::vector<Feature>& inputs) const {
  if (!(axes == 2 ? is_image(layer, inputs[0]) : is_volume(layer, inputs[0]))) return {};
  const Shape x = layer.shape(inputs[0]);
  const std::int64_t divisor = checked_groups(layer, inputs[0], groups, filters);
  Sizes input;
  std::copy_n(x.sizes().begin(), axes, input.begin());
  WindowOf<axes> window{kernel_size, strides, dilation_rate, {}, {}};
  if (const auto wrong = resolve_padding(window, padding, input, "kernel")) return layer.error(*wrong, inputs[0]);
  std::vector<std::int64_t> shape(kernel_size.begin(), kernel_size.end());
  shape.insert(shape.end(), {x.back() / divisor, filters});
  const auto ids = operands(layer, inputs[0].tensor, Shape(std::move(shape)), filters);
  return layer.output(layer.activate(layer.op(std::make_shared<Conv<axes>>(window, divisor), ids)[0], activation));
}

template struct ConvOptions<2>;
template struct ConvOptions<3>;

}  // namespace trainctl
