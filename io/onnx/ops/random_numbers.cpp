// Translates random numbers: ONNX draws its own.
#include "core/graph/ops/elementwise/random_numbers.h"

#include "io/onnx/ops/ops.h"

namespace trainctl::onnx {

void random_numbers(const OnnxOp& op) {
  const auto& def = op.as<RandomNumbers>();
  const std::string first = op.node("Slice", {op.node("Shape", {op.value(0)}), op.integers({0}), op.integers({1})});
  const std::string shape = op.node("Concat", {first, op.integers(def.sample.sizes())}, {{"axis", 0}});
  const std::string zeros = op.node("ConstantOfShape", {shape});
  op.set_output(
      op.node(def.distribution == RandomNumbers::Kind::normal ? "RandomNormalLike" : "RandomUniformLike", {zeros}));
}

}  // namespace trainctl::onnx
