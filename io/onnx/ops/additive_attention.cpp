// Translates additive attention: the tangents of all pairs of a query and a key are values with 4 dimensions, [sample,
// query, key, value].
#include "core/graph/ops/additive_attention.h"

#include <limits>

#include "io/onnx/ops/ops.h"

namespace trainctl::onnx {
namespace {

constexpr float hidden_score = std::numeric_limits<float>::lowest();
constexpr std::int64_t condition_type = 9;  // TensorProto.DataType

// Summands of the scores [queries, keys]: 0, or the hidden_score number for later keys.
std::string causal_order(const OnnxOp& op, std::int64_t queries, std::int64_t keys) {
  std::vector<float> summands;
  for (std::int64_t t = 0; t < queries; ++t) {
    for (std::int64_t s = 0; s < keys; ++s) summands.push_back(s <= t ? 0.0f : hidden_score / 2);
  }
  return op.numbers({queries, keys}, summands);
}

}  // namespace

void additive_attention(const OnnxOp& op) {
  const auto& def = op.as<AdditiveAttention>();
  const AttentionInputs inputs(def.a);
  const std::string queries = op.node("Unsqueeze", {op.value(0), op.integers({2})});
  const std::string keys = op.node("Unsqueeze", {op.value(1), op.integers({1})});
  std::string tangents = op.node("Tanh", {op.node("Add", {queries, keys})});
  if (def.weighted) {
    const OnnxWeights weights = op.weights(inputs.count);
    const Shape row{weights.shape.count()};
    tangents = op.node("Mul", {tangents, op.weights_value(weights.name, row, weights.values)});
  }
  std::string scores = op.node("ReduceSum", {tangents, op.integers({-1})}, {{"keepdims", 0}});
  if (def.a.causal) {
    scores = op.node("Add", {scores, causal_order(op, op.input_type(0).shape[1], op.input_type(1).shape[1])});
  }
  if (def.a.mask) {
    const std::string shown = op.node("Cast", {op.value(inputs.mask)}, {{"to", condition_type}});
    scores = op.node("Where", {op.node("Unsqueeze", {shown, op.integers({1})}), scores, op.number(hidden_score)});
  }
  op.set_output(op.node("MatMul", {op.node("Softmax", {scores}, {{"axis", -1}}), op.value(2)}));
}

}  // namespace trainctl::onnx
