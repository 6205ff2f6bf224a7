// Translates convolutions. In ONNX images and volumes have their channels first, and kernels are (out, in / groups,
// [depth,] height, width).
#include "core/graph/ops/images/convolution.h"
#include "io/onnx/ops/ops.h"

namespace trainctl::onnx {
namespace {

template <std::size_t axes>
std::vector<std::int64_t> list(const std::array<std::int64_t, axes>& sizes) {
  return {sizes.begin(), sizes.end()};
}

template <std::size_t axes>
std::vector<OnnxAttribute> attributes_of(const WindowOf<axes>& window, std::int64_t groups) {
  std::vector<std::int64_t> pads = list(window.padding_before);
  pads.insert(pads.end(), window.padding_after.begin(), window.padding_after.end());
  return {{"kernel_shape", list(window.size)},
          {"strides", list(window.strides)},
          {"dilations", list(window.dilation)},
          {"pads", pads},
          {"group", groups}};
}

// Adds the kernel ([depth,] height, width, in / groups, out) in ONNX's order; the kernel of a 1D convolution has height
// 1.
template <std::size_t axes>
std::string kernel_of(const OnnxOp& op) {
  const OnnxWeights kernel = op.weights(1);
  constexpr auto window_rank = static_cast<std::int64_t>(axes);
  const Shape shape = kernel.shape.rank() < window_rank + 2 ? kernel.shape.with_front(1) : kernel.shape;
  std::vector<std::int64_t> order{window_rank + 1, window_rank}, sizes;
  for (std::int64_t axis = 0; axis < window_rank; ++axis) order.push_back(axis);
  for (std::int64_t axis : order) sizes.push_back(shape[axis]);
  return op.weights_value(kernel.name, Shape(std::move(sizes)), permuted(kernel.values, shape, order));
}

template <std::size_t axes>
void convolution(const OnnxOp& op) {
  const auto& conv = op.as<Conv<axes>>();
  std::vector<std::string> operands{op.value(0, Channels::first), kernel_of<axes>(op)};
  if (op.inputs() > 2) operands.push_back(op.weights_value(2));
  const std::string y = op.node("Conv", operands, attributes_of(conv.window, conv.groups));
  op.set_output(activated(op, conv.function, y), Channels::first);
}

// Translates the transposed convolution. Several output sizes are possible with strides; output_padding selects one.
template <std::size_t axes>
void transposed_convolution(const OnnxOp& op) {
  const auto& conv = op.as<ConvGradInput<axes>>();
  const WindowOf<axes>& window = conv.window;
  std::vector<std::int64_t> more;
  for (std::size_t axis = 0; axis < axes; ++axis) {
    const auto dimension = static_cast<std::int64_t>(axis) + 1;
    const std::int64_t span = window.dilation[axis] * (window.size[axis] - 1) + 1;
    const std::int64_t min_size = window.strides[axis] * (op.input_type(0).shape[dimension] - 1) + span -
                                  window.padding_before[axis] - window.padding_after[axis];
    more.push_back(conv.input[dimension] - min_size);
  }
  std::vector<OnnxAttribute> attributes = attributes_of(window, conv.groups);
  attributes.push_back({"output_padding", more});
  op.set_output(op.node("ConvTranspose", {op.value(0, Channels::first), kernel_of<axes>(op)}, attributes),
                Channels::first);
}

}  // namespace

void conv2d(const OnnxOp& op) { convolution<2>(op); }
void conv3d(const OnnxOp& op) { convolution<3>(op); }
void conv2d_grad_input(const OnnxOp& op) { transposed_convolution<2>(op); }
void conv3d_grad_input(const OnnxOp& op) { transposed_convolution<3>(op); }

}  // namespace trainctl::onnx
