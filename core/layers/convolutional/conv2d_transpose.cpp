// conv2d_transpose: kernel (height, width, filters, in), bias (filters).
#include <algorithm>

#include "core/base/format.h"
#include "core/graph/ops/elementwise/bias.h"
#include "core/graph/ops/images/conv2d.h"
#include "core/layers/images.h"
#include "core/layers/linear.h"
#include "core/layers/table.h"
#include "core/layers/window.h"

namespace trainctl {
namespace {

struct Conv2dTransposeOptions final : LinearLayer {
  std::int64_t filters = 0;
  Size2d kernel_size{0, 0};
  Size2d strides{1, 1};
  PaddingMode padding = PaddingMode::valid;
  Size2d dilation_rate{1, 1};

  // Returns the height or the width of the output, by Keras' rule.
  std::int64_t enlarged(std::int64_t input, std::size_t axis) const {
    const std::int64_t size = checked_multiply(input, strides[axis]);
    if (padding == PaddingMode::same) return size;
    const std::int64_t span = checked_add(checked_multiply(dilation_rate[axis], kernel_size[axis] - 1), 1);
    return checked_add(size, std::max<std::int64_t>(span - strides[axis], 0));
  }

  // Computes the input gradient of a convolution with this window that maps the output's shape to the input's shape.
  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    if (!is_image(layer, inputs[0])) return {};
    const Shape x = layer.shape(inputs[0]), y{enlarged(x[0], 0), enlarged(x[1], 1), filters};
    Window window{kernel_size, strides, dilation_rate, {}, {}};
    if (const std::int64_t longest = std::max(y[0], y[1]); longest > max_pixels) {
      return layer.error(format("output {} is more than {} pixels", longest, max_pixels), inputs[0]);
    }
    if (const auto wrong = resolve_padding(window, padding, {y[0], y[1]}, "kernel")) {
      return layer.error(*wrong, inputs[0]);
    }
    const auto transposed = std::make_shared<Conv2dGradInput>(window, 1, layer.batch_of(y));
    TensorId result =
        layer.op(transposed, {inputs[0].tensor, kernel(layer, {kernel_size[0], kernel_size[1], filters, x[2]})})[0];
    if (use_bias) result = layer.op(std::make_shared<AddBias>(), {result, bias(layer, filters)})[0];
    return layer.output(layer.activate(result, activation));
  }
};

}  // namespace

Section conv2d_transpose() {
  using O = Conv2dTransposeOptions;
  return linear_keys(
      layer_keys<O>("conv2d_transpose",
                    "A transposed convolution, which enlarges images: each pixel adds its multiple of the kernel to "
                    "the output.")
          .required("filters", &O::filters, "Number of output channels.", between(1, max_channels))
          .required("kernel_size", &O::kernel_size, "Height and width of the kernel in pixels.", at_least(1))
          .key("strides", &O::strides, "Steps in the output, down and right, from one pixel of the input to the next.",
               at_least(1))
          .key("padding", &O::padding,
               "same: the output is strides times as large as the input; valid: it also has the pixels that the kernel "
               "reaches beyond that size.")
          .key("dilation_rate", &O::dilation_rate, "Distance between the kernel's elements in pixels.", at_least(1)));
}

}  // namespace trainctl
