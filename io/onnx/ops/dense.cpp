// Translates dense layers, products with transposed kernels, and embeddings.
#include "core/graph/ops/dense.h"

#include "core/base/error.h"
#include "core/graph/ops/position_embedding.h"

#include "io/onnx/ops/ops.h"

namespace trainctl::onnx {

void dense(const OnnxOp& op) {
  std::vector<std::string> operands{op.value(0), op.weights_value(1)};
  const bool bias = op.inputs() > 2, matrix = op.input_type(0).shape.rank() == 2;
  if (bias && matrix) operands.push_back(op.weights_value(2));
  std::string y = op.node(matrix ? "Gemm" : "MatMul", operands);
  if (bias && !matrix) y = op.node("Add", {y, op.weights_value(2)});
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
