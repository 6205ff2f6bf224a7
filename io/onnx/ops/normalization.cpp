// Translates normalizations by running statistics and by statistics of each sample.
#include <algorithm>

#include "core/base/error.h"
#include "core/graph/ops/normalization/batch_norm.h"
#include "core/graph/ops/normalization/group_norm.h"
#include "core/graph/ops/normalization/layer_norm.h"
#include "io/onnx/ops/ops.h"

namespace trainctl::onnx {
namespace {

std::string constant_of(const OnnxOp& op, std::int64_t count, float value) {
  return op.numbers({count}, std::vector<float>(static_cast<std::size_t>(count), value));
}

// RMS normalization has an operator of its own only in later opsets.
std::string rms_norm(const OnnxOp& op, const LayerNormAttributes& a) {
  const std::string x = op.value(0);
  const std::string mean = op.node("ReduceMean", {op.node("Mul", {x, x}), op.integers({-1})});
  const std::string root = op.node("Sqrt", {op.node("Add", {mean, op.number(a.epsilon)})});
  std::string y = op.node("Div", {x, root});
  if (a.scale) y = op.node("Mul", {y, op.weights_value(1)});
  if (a.center) y = op.node("Add", {y, op.weights_value(a.scale ? 2 : 1)});
  return y;
}

}  // namespace

void batch_norm_inference(const OnnxOp& op) {
  const BatchNormAttributes& a = op.as<BatchNormInference>().a;
  require(!a.residual && !a.relu, "batch_norm_inference was fused before its translation");
  const std::int64_t channels = op.input_type(0).shape.back();
  std::size_t next_weights = 1;
  std::vector<std::string> operands{op.value(0, Channels::first)};
  operands.push_back(a.scale ? op.weights_value(next_weights++) : constant_of(op, channels, 1));
  operands.push_back(a.center ? op.weights_value(next_weights++) : constant_of(op, channels, 0));
  operands.push_back(op.weights_value(next_weights++));  // mean
  operands.push_back(op.weights_value(next_weights));    // variance
  op.set_output(op.node("BatchNormalization", operands, {{"epsilon", a.epsilon}}), Channels::first);
}

void layer_norm(const OnnxOp& op) {
  const LayerNormAttributes& a = op.as<LayerNorm>().a;
  if (!a.centered) return op.set_output(rms_norm(op, a));
  std::vector<std::string> operands{op.value(0)};
  operands.push_back(a.scale ? op.weights_value(1) : constant_of(op, op.input_type(0).shape.back(), 1));
  if (a.center) operands.push_back(op.weights_value(a.scale ? 2 : 1));
  op.set_output(op.node("LayerNormalization", operands, {{"axis", -1}, {"epsilon", a.epsilon}}));
}

// Normalizes the groups of a sample as channels of an instance normalization, then applies gamma and beta by channel.
void group_norm(const OnnxOp& op) {
  const GroupNormAttributes& a = op.as<GroupNorm>().a;
  const Shape& x = op.input_type(0).shape;
  std::vector<std::int64_t> original_shape = open_batch(x);
  if (x.rank() > 2) std::rotate(original_shape.begin() + 1, original_shape.end() - 1, original_shape.end());
  const std::string groups = op.node(
      "Reshape", {op.value(0, Channels::first), op.integers({-1, a.groups, x.without_front().count() / a.groups})});
  std::string y = op.node("InstanceNormalization", {groups, constant_of(op, a.groups, 1), constant_of(op, a.groups, 0)},
                          {{"epsilon", a.epsilon}});
  y = op.node("Reshape", {y, op.integers(original_shape)});
  std::size_t next_weights = 1;
  const auto of_channels = [&] {
    const OnnxWeights weights = op.weights(next_weights++);
    return op.weights_value(weights.name, op.of_channels(Channels::first, x.back()), weights.values);
  };
  if (a.scale) y = op.node("Mul", {y, of_channels()});
  if (a.center) y = op.node("Add", {y, of_channels()});
  op.set_output(y, Channels::first);
}

}  // namespace trainctl::onnx
