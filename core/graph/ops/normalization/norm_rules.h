// Attributes, output types and differentiation that layer_norm and group_norm have in common.
#pragma once

#include <memory>

#include "core/graph/ops/attributes.h"
#include "core/graph/ops/backward.h"
#include "core/graph/ops/normalization/norm.h"

namespace trainctl {

inline AttributeText& describe(AttributeText& text, const NormAttributes& a) {
  return text.value("epsilon", a.epsilon).flag("no_scale", !a.scale).flag("no_center", !a.center);
}

// The types of the outputs of a gradient op: dx (like x), [dgamma] and [dbeta] (float32 [C]).
inline std::vector<TensorType> norm_gradient_types(const NormAttributes& a, const TensorType& x) {
  std::vector<TensorType> types(std::size_t{1} + a.scale + a.center, {{x.shape.back()}, DType::float32});
  types[0] = x;
  return types;
}

// Emits the op Grad for an op with the inputs x, [gamma], [beta] and the outputs y, mean and 1 / sqrt(variance +
// epsilon).
template <class Grad, class Attributes>
void differentiate_norm(const Attributes& a, const Op& op, Differentiator& differentiator) {
  std::size_t input = 1;
  std::vector<TensorId> operands{differentiator.gradient_of(op.outputs[0]), op.inputs[0]};
  std::vector<TensorId> results{no_tensor};
  if (a.scale) {
    operands.push_back(op.inputs[input]);
    results.push_back(parameter_gradient_or_none(op.inputs[input++], differentiator));
  }
  if (a.center) results.push_back(parameter_gradient_or_none(op.inputs[input], differentiator));
  operands.insert(operands.end(), {op.outputs[1], op.outputs[2]});
  const auto grad = std::make_shared<Grad>(a, differentiator.accumulate());
  const auto outputs = differentiator.emit_into(grad, std::move(operands), std::move(results), op);
  if (differentiator.needs_gradient(op.inputs[0])) differentiator.contribute(op.inputs[0], outputs[0]);
}

}  // namespace trainctl
