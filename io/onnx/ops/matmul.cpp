// Translates products of two activations.
#include "core/graph/ops/matmul.h"

#include <numeric>

#include "io/onnx/ops/ops.h"

namespace trainctl::onnx {
namespace {

// The operand with its last two dimensions in the order of the product.
std::string operand(const OnnxOp& op, std::size_t input, bool transposed) {
  if (!transposed) return op.value(input);
  std::vector<std::int64_t> order(static_cast<std::size_t>(op.input_type(input).shape.rank()));
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[order.size() - 2], order.back());
  return op.node("Transpose", {op.value(input)}, {{"perm", order}});
}

}  // namespace

void matmul(const OnnxOp& op) {
  const auto& def = op.as<Matmul>();
  op.set_output(op.node("MatMul", {operand(op, 0, def.transpose_a), operand(op, 1, def.transpose_b)}));
}

}  // namespace trainctl::onnx
