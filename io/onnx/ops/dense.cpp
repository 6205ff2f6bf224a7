// Translates dense layers and embeddings.
#include "core/graph/ops/dense.h"

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

// Indices outside the table are an error in ONNX runtimes; in trainctl they produce NaN.
void embedding(const OnnxOp& op) { op.set_output(op.node("Gather", {op.weights_value(1), op.value(0)})); }

}  // namespace trainctl::onnx
