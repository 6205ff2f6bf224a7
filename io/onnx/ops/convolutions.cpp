// Translates convolutions. In ONNX images have their channels first, and kernels are (out, in / groups, height, width).
#include "core/graph/ops/images/conv2d.h"
#include "io/onnx/ops/ops.h"

namespace trainctl::onnx {
namespace {

using Pair = std::array<std::int64_t, 2>;

std::vector<std::int64_t> list(const Pair& pair) { return {pair[0], pair[1]}; }

std::vector<OnnxAttribute> attributes_of(const Window& window, std::int64_t groups) {
  const Pair &before = window.padding_before, &after = window.padding_after;
  return {{"kernel_shape", list(window.size)},
          {"strides", list(window.strides)},
          {"dilations", list(window.dilation)},
          {"pads", std::vector<std::int64_t>{before[0], before[1], after[0], after[1]}},
          {"group", groups}};
}

// Adds the kernel (height, width, in / groups, out) in ONNX's order; the kernel of a 1D convolution has height 1.
std::string kernel_of(const OnnxOp& op) {
  const OnnxWeights kernel = op.weights(1);
  const Shape shape = kernel.shape.rank() == 3 ? kernel.shape.with_front(1) : kernel.shape;
  return op.weights_value(kernel.name, {shape[3], shape[2], shape[0], shape[1]},
                          permuted(kernel.values, shape, {3, 2, 0, 1}));
}

}  // namespace

void conv2d(const OnnxOp& op) {
  const auto& conv = op.as<Conv2d>();
  std::vector<std::string> operands{op.value(0, Channels::first), kernel_of(op)};
  if (op.inputs() > 2) operands.push_back(op.weights_value(2));
  const std::string y = op.node("Conv", operands, attributes_of(conv.window, conv.groups));
  op.set_output(activated(op, conv.function, y), Channels::first);
}

// Translates the transposed convolution. Several output sizes are possible with strides; output_padding selects one.
void conv2d_grad_input(const OnnxOp& op) {
  const auto& conv = op.as<Conv2dGradInput>();
  const Window& window = conv.window;
  std::vector<std::int64_t> more;
  for (std::size_t axis = 0; axis < 2; ++axis) {
    const auto dimension = static_cast<std::int64_t>(axis) + 1;
    const std::int64_t span = window.dilation[axis] * (window.size[axis] - 1) + 1;
    const std::int64_t min_size = window.strides[axis] * (op.input_type(0).shape[dimension] - 1) + span -
                                  window.padding_before[axis] - window.padding_after[axis];
    more.push_back(conv.input[dimension] - min_size);
  }
  std::vector<OnnxAttribute> attributes = attributes_of(window, conv.groups);
  attributes.push_back({"output_padding", more});
  op.set_output(op.node("ConvTranspose", {op.value(0, Channels::first), kernel_of(op)}, attributes), Channels::first);
}

}  // namespace trainctl::onnx
