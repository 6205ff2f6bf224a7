// Translates sums and extremes over dimensions, and cumulative sums.
#include "core/graph/ops/reduce.h"

#include "core/graph/ops/cumsum.h"

#include "io/onnx/ops/ops.h"

namespace trainctl::onnx {

void reduce(const OnnxOp& op) {
  const auto& def = op.as<Reduce>();
  std::string x = op.value(0);
  std::vector<std::int64_t> axes;
  for (int axis = def.begin; axis < def.end; ++axis) axes.push_back(axis);
  if (!axes.empty()) {  // without axes, ONNX reduces all of them
    const char* type = def.reduction == ReduceKind::sum       ? "ReduceSum"
                       : def.reduction == ReduceKind::maximum ? "ReduceMax"
                                                              : "ReduceMin";
    x = op.node(type, {x, op.integers(axes)}, {{"keepdims", def.keep ? 1 : 0}});
  }
  if (def.scale != 1) x = op.node("Mul", {x, op.number(def.scale)});
  op.set_output(x);
}

void cumsum(const OnnxOp& op) {
  const auto& def = op.as<CumulativeSum>();
  op.set_output(op.node("CumSum", {op.value(0), op.integer(def.axis)}, {{"reverse", def.reverse ? 1 : 0}}));
}

}  // namespace trainctl::onnx
