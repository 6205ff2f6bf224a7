// Translates element-wise ops: sums, products, maxima and minima of tensors, multiples, biases, and scaling by channel.
#include "core/graph/ops/elementwise/bias.h"
#include "core/graph/ops/elementwise/combine.h"
#include "core/graph/ops/elementwise/gated_linear_unit.h"
#include "core/graph/ops/elementwise/prelu.h"
#include "core/graph/ops/normalization/normalize.h"
#include "io/onnx/ops/ops.h"

namespace trainctl::onnx {
namespace {

// Adds an operator on two tensors. Dimensions of size 1 are broadcast.
std::string binary(const OnnxOp& op, const std::string& type, Channels channels) {
  return op.node(type, {op.value(0, channels), op.value(1, channels)});
}

}  // namespace

void add(const OnnxOp& op) {
  const Channels channels = op.channels();
  op.set_output(activated(op, op.as<Add>().function, binary(op, "Add", channels)), channels);
}

void multiply(const OnnxOp& op) {
  const Channels channels = op.channels();
  op.set_output(binary(op, "Mul", channels), channels);
}

void gated_linear_unit(const OnnxOp& op) {
  const Channels channels = op.channels();
  const std::string gate = activated(op, op.as<GatedLinearUnit>().function, op.value(0, channels));
  op.set_output(op.node("Mul", {gate, op.value(1, channels)}), channels);
}

void multiply_channels(const OnnxOp& op) { multiply(op); }

void extremum(const OnnxOp& op) {
  const Channels channels = op.channels();
  op.set_output(binary(op, op.as<Extremum>().which == Extreme::largest ? "Max" : "Min", channels), channels);
}

void scale_by(const OnnxOp& op) {
  const Channels channels = op.channels();
  op.set_output(op.node("Mul", {op.value(0, channels), op.number(op.as<ScaleBy>().factor)}), channels);
}

void add_bias(const OnnxOp& op) {
  const Channels channels = op.channels();
  const OnnxWeights bias = op.weights(1);
  const Shape shape = op.of_channels(channels, bias.shape[0]);
  const std::string sum = op.node("Add", {op.value(0, channels), op.weights_value(bias.name, shape, bias.values)});
  op.set_output(activated(op, op.as<AddBias>().function, sum), channels);
}

void normalize(const OnnxOp& op) {
  const auto& normalize = op.as<Normalize>();
  const Channels channels = op.channels();
  const auto constant = [&](const std::vector<float>& values) {
    return op.numbers(op.of_channels(channels, std::ssize(values)), values);
  };
  std::string x = op.value(0, channels);
  if (op.input_type(0).dtype != DType::float32) x = op.node("Cast", {x}, {{"to", 1}});
  const std::string product = op.node("Mul", {x, constant(normalize.scale)});
  op.set_output(op.node("Add", {product, constant(normalize.offset)}), channels);
}

void prelu(const OnnxOp& op) {
  const Channels channels = op.channels();
  const OnnxWeights alpha = op.weights(1);
  if (channels == Channels::last) {
    op.set_output(op.node("PRelu", {op.value(0), op.weights_value(1)}));
    return;
  }
  // The last dimension of alpha, the channels, becomes the first.
  std::vector<std::int64_t> order{alpha.shape.rank() - 1}, sizes{alpha.shape.back()};
  for (std::int64_t k = 0; k + 1 < alpha.shape.rank(); ++k) {
    order.push_back(k);
    sizes.push_back(alpha.shape[k]);
  }
  const std::string slope = op.weights_value(alpha.name, Shape(sizes), permuted(alpha.values, alpha.shape, order));
  op.set_output(op.node("PRelu", {op.value(0, channels), slope}), channels);
}

}  // namespace trainctl::onnx
