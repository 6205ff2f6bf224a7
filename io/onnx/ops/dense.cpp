// Translates dense layers, products with transposed kernels, and embeddings.
#include "core/graph/ops/dense.h"

#include "core/base/error.h"
#include "core/graph/ops/position_embedding.h"

#include "io/onnx/ops/ops.h"

namespace trainctl::onnx {

namespace {

// The weights as a constant of this shape.
std::string weights_of_shape(const OnnxOp& op, std::size_t input, const Shape& shape) {
  const OnnxWeights weights = op.weights(input);
  return op.weights_value(weights.name, shape, weights.values);
}

}  // namespace

void dense(const OnnxOp& op) {
  const Shape& x = op.input_type(0).shape;
  const Shape kernel = kernel_of_inputs(op.input_type(1).shape, x.back());
  std::vector<std::string> operands{op.value(0), weights_of_shape(op, 1, kernel)};
  const bool bias = op.inputs() > 2, matrix = x.rank() == 2;
  if (bias && matrix) operands.push_back(weights_of_shape(op, 2, {kernel[1]}));
  std::string y = op.node(matrix ? "Gemm" : "MatMul", operands);
  if (bias && !matrix) y = op.node("Add", {y, weights_of_shape(op, 2, {kernel[1]})});
  op.set_output(activated(op, op.as<Dense>().function, y));
}

void dense_grad_input(const OnnxOp& op) {
  const auto& def = op.as<DenseGradInput>();
  require(!def.accumulate && def.function.kind == ActivationKind::none,
          "dense_grad_input was fused before its translation");
  const std::string transposed =
      op.node("Transpose", {op.weights_value(1)}, {{"perm", std::vector<std::int64_t>{1, 0}}});
  op.set_output(op.node("MatMul", {op.value(0), transposed}));
}

// Indices outside the table are an error in ONNX runtimes; in trainctl they produce NaN.
void embedding(const OnnxOp& op) { op.set_output(op.node("Gather", {op.weights_value(1), op.value(0)})); }

void position_embedding(const OnnxOp& op) {
  const std::int64_t steps = op.input_type(0).shape[1];
  std::string rows = op.weights_value(1);
  if (op.input_type(1).shape[0] != steps) {
    rows = op.node("Slice", {rows, op.integers({0}), op.integers({steps}), op.integers({0})});
  }
  const std::string x = op.value(0);
  op.set_output(op.as<PositionEmbedding>().adds ? op.node("Add", {x, rows})
                                                : op.node("Expand", {rows, op.node("Shape", {x})}));
}

}  // namespace trainctl::onnx
