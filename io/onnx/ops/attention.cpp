// Translates attention: products with 5 dimensions, [sample, key head, query head of the key head, position, value].
#include "core/graph/ops/attention.h"

#include <limits>

#include "core/graph/ops/attention_heads.h"
#include "io/onnx/ops/ops.h"

namespace trainctl::onnx {
namespace {

constexpr float lowest = std::numeric_limits<float>::lowest();

class AttentionNodes {
 public:
  explicit AttentionNodes(const OnnxOp& op) : op_(op), a_(op.as<Attention>().a), sizes_(sizes_of(op)) {}

  void write() const {
    const std::string q = transposed(queries(), {0, 2, 3, 1, 4});
    const std::string k = transposed(keys(), {0, 2, 3, 4, 1});
    const std::string v = transposed(values(), {0, 2, 3, 1, 4});
    std::string scores = op_.node("Mul", {op_.node("MatMul", {q, k}), op_.number(a_.scale)});
    const std::string probabilities = op_.node("Softmax", {hidden(scores)}, {{"axis", -1}});
    const std::string y = transposed(op_.node("MatMul", {probabilities, v}), {0, 3, 1, 2, 4});
    op_.set_output(op_.node("Reshape", {y, op_.integers(open_batch(op_.output_type().shape))}));
  }

 private:
  static AttentionSizes sizes_of(const OnnxOp& op) {
    std::vector<TensorType> types;
    for (std::size_t i = 0; i < op.inputs(); ++i) types.push_back(op.input_type(i));
    return {op.as<Attention>().a, types};
  }

  std::string reshape(const std::string& x, std::int64_t positions, std::int64_t group, std::int64_t width) const {
    return op_.node("Reshape", {x, op_.integers({-1, positions, sizes_.key_heads, group, width})});
  }
  std::string transposed(const std::string& x, const std::vector<std::int64_t>& order) const {
    return op_.node("Transpose", {x}, {{"perm", order}});
  }
  // Columns [first, end) of the packed input, in units of heads.
  std::string packed(std::int64_t first, std::int64_t end) const {
    const std::string all = reshape(op_.value(0), sizes_.queries, a_.packed + 2, a_.head_size);
    return op_.node("Slice", {all, op_.integers({first}), op_.integers({end}), op_.integers({3})});
  }
  std::string queries() const {
    return a_.packed != 0 ? packed(0, a_.packed) : reshape(op_.value(0), sizes_.queries, sizes_.group(), a_.head_size);
  }
  std::string keys() const {
    return a_.packed != 0 ? packed(a_.packed, a_.packed + 1) : reshape(op_.value(1), sizes_.keys, 1, a_.head_size);
  }
  std::string values() const {
    return a_.packed != 0 ? packed(a_.packed + 1, a_.packed + 2) : reshape(op_.value(2), sizes_.keys, 1, a_.value_size);
  }

  // Returns the scores with the lowest number where a query does not see a key.
  std::string hidden(std::string scores) const {
    const AttentionInputs inputs(a_);
    if (a_.causal || a_.window != 0) scores = op_.node("Add", {scores, order()});
    if (a_.mask) {
      const std::string rows = op_.node("Reshape", {op_.value(inputs.mask), op_.integers({-1, 1, 1, 1, sizes_.keys})});
      scores = shown(op_.node("Cast", {rows}, {{"to", onnx_bool}}), scores);
    }
    if (a_.documents) {
      const std::string numbers = op_.value(inputs.documents);
      const std::string of_queries = op_.node("Reshape", {numbers, op_.integers({-1, 1, 1, sizes_.queries, 1})});
      const std::string of_keys = op_.node("Reshape", {numbers, op_.integers({-1, 1, 1, 1, sizes_.keys})});
      scores = shown(op_.node("Equal", {of_queries, of_keys}), scores);
    }
    return scores;
  }
  std::string shown(const std::string& condition, const std::string& scores) const {
    return op_.node("Where", {condition, scores, op_.number(lowest)});
  }
  // Summands by the order of positions: 0, or half of the lowest number.
  std::string order() const {
    Visibility visibility;
    visibility.causal = a_.causal;
    visibility.window = a_.window;
    visibility.keys = sizes_.keys;
    std::vector<float> summands;
    for (std::int64_t t = 0; t < sizes_.queries; ++t) {
      for (std::int64_t s = 0; s < sizes_.keys; ++s) {
        summands.push_back(s >= visibility.first(t) && s < visibility.end(t) ? 0.0f : lowest / 2);
      }
    }
    return op_.numbers({sizes_.queries, sizes_.keys}, summands);
  }

  static constexpr std::int64_t onnx_bool = 9;  // TensorProto.DataType

  const OnnxOp& op_;
  const AttentionAttributes& a_;
  AttentionSizes sizes_;
};

}  // namespace

void attention(const OnnxOp& op) { AttentionNodes(op).write(); }

}  // namespace trainctl::onnx
