// conv2d_transpose: kernel (height, width, filters, in), bias (filters). conv3d_transpose: kernel (depth, height,
// width, filters, in), bias (filters). conv1d_transpose: kernel (length, filters, in), bias (filters); computed over
// images one pixel high.
#include <algorithm>

#include "core/base/format.h"
#include "core/graph/ops/elementwise/bias.h"
#include "core/graph/ops/images/convolution.h"
#include "core/layers/images.h"
#include "core/layers/linear.h"
#include "core/layers/table.h"
#include "core/layers/volumes.h"
#include "core/layers/window.h"

namespace trainctl {
namespace {

struct TransposedConvolution : LinearLayer {
  std::int64_t filters = 0;
  PaddingMode padding = PaddingMode::valid;

 protected:
  // Returns the size of the output along an axis, by Keras' rule.
  template <std::size_t axes>
  std::int64_t enlarged(std::int64_t input, const WindowOf<axes>& window, std::size_t axis) const {
    const std::int64_t size = checked_multiply(input, window.strides[axis]);
    if (padding == PaddingMode::same) return size;
    const std::int64_t span = checked_add(checked_multiply(window.dilation[axis], window.size[axis] - 1), 1);
    return checked_add(size, std::max<std::int64_t>(span - window.strides[axis], 0));
  }

  // Computes the input gradient of a convolution with this window that maps the output's shape to the input's shape
  // `x` ([depth,] height, width, channels). Returns the images or volumes before the activation, or no_tensor after
  // reporting an error.
  template <std::size_t axes>
  TensorId enlarge(Layer& layer, const Feature& input, TensorId images, const Shape& x, WindowOf<axes> window,
                   const Shape& kernel_shape) const {
    typename WindowOf<axes>::Sizes sizes;
    Shape y = x.with_back(filters);
    for (std::size_t axis = 0; axis < axes; ++axis) {
      const auto dimension = static_cast<std::int64_t>(axis);
      y[dimension] = sizes[axis] = enlarged(x[dimension], window, axis);
    }
    std::optional<std::string> wrong;
    if (const std::int64_t longest = *std::max_element(sizes.begin(), sizes.end()); longest > max_pixels) {
      wrong = format("output {} is more than {} pixels", longest, max_pixels);
    } else {
      wrong = resolve_padding(window, padding, sizes, "kernel");
    }
    if (wrong) return layer.error(*wrong, input).tensor;
    const auto transposed = std::make_shared<ConvGradInput<axes>>(window, 1, layer.batch_of(y));
    const TensorId result = layer.op(transposed, {images, kernel(layer, kernel_shape)})[0];
    return use_bias ? layer.op(std::make_shared<AddBias>(), {result, bias(layer, filters)})[0] : result;
  }
};

template <std::size_t axes>
struct ConvTransposeOptions final : TransposedConvolution {
  using Sizes = typename WindowOf<axes>::Sizes;

  Sizes kernel_size{};
  Sizes strides = WindowOf<axes>().strides;
  Sizes dilation_rate = WindowOf<axes>().dilation;

  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    if (!(axes == 2 ? is_image(layer, inputs[0]) : is_volume(layer, inputs[0]))) return {};
    const Shape x = layer.shape(inputs[0]);
    std::vector<std::int64_t> shape(kernel_size.begin(), kernel_size.end());
    shape.insert(shape.end(), {filters, x.back()});
    const WindowOf<axes> window{kernel_size, strides, dilation_rate, {}, {}};
    const TensorId y = enlarge(layer, inputs[0], inputs[0].tensor, x, window, Shape(std::move(shape)));
    return y == no_tensor ? Feature{} : layer.output(layer.activate(y, activation));
  }
};

using Conv2dTransposeOptions = ConvTransposeOptions<2>;
using Conv3dTransposeOptions = ConvTransposeOptions<3>;

struct Conv1dTransposeOptions final : TransposedConvolution {
  std::int64_t kernel_size = 0;
  std::int64_t strides = 1;
  std::int64_t dilation_rate = 1;

  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override {
    if (!is_sequence(layer, inputs[0])) return {};
    const Shape x = layer.shape(inputs[0]).with_front(1);
    const Window window{{1, kernel_size}, {1, strides}, {1, dilation_rate}, {}, {}};
    const TensorId y = enlarge(layer, inputs[0], as_images(layer, inputs[0]), x, window, {kernel_size, filters, x[2]});
    return y == no_tensor ? Feature{} : layer.output(as_sequences(layer, layer.activate(y, activation)));
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

Section conv3d_transpose() {
  using O = Conv3dTransposeOptions;
  return linear_keys(
      layer_keys<O>("conv3d_transpose",
                    "A transposed convolution, which enlarges volumes (depth, height, width, channels): each pixel "
                    "adds its multiple of the kernel to the output.")
          .required("filters", &O::filters, "Number of output channels.", between(1, max_channels))
          .required("kernel_size", &O::kernel_size, "Depth, height and width of the kernel.", at_least(1))
          .key("strides", &O::strides,
               "Steps in the output along depth, height and width from one pixel of the input to the next.",
               at_least(1))
          .key("padding", &O::padding,
               "same: the output is strides times as large as the input; valid: it also has the pixels that the kernel "
               "reaches beyond that size.")
          .key("dilation_rate", &O::dilation_rate, "Distance between the kernel's elements in pixels.", at_least(1)));
}

Section conv1d_transpose() {
  using O = Conv1dTransposeOptions;
  return linear_keys(
      layer_keys<O>("conv1d_transpose",
                    "A transposed convolution, which lengthens sequences (steps, channels): each step adds its "
                    "multiple of the kernel to the output.")
          .required("filters", &O::filters, "Number of output channels.", between(1, max_channels))
          .required("kernel_size", &O::kernel_size, "Length of the kernel in steps.", at_least(1))
          .key("strides", &O::strides, "Steps in the output from one step of the input to the next.", at_least(1))
          .key("padding", &O::padding,
               "same: the output is strides times as long as the input; valid: it also has the steps that the kernel "
               "reaches beyond that length.")
          .key("dilation_rate", &O::dilation_rate, "Distance between the kernel's elements in steps.", at_least(1)));
}

}  // namespace trainctl
