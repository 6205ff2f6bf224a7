// Helpers for the definitions of several ops, mostly for differentiation.
#pragma once

#include "core/graph/differentiator.h"
#include "core/graph/ops/attributes.h"
#include "core/graph/ops/elementwise/activations.h"

namespace trainctl {

// The gradient of the loss with respect to the input of an op's fused activation f: the gradient with respect to the
// op's first output y, times f'(y) if an activation is fused.
TensorId gradient_before(const ActivationFunction& function, const Op& op, Differentiator& differentiator);

// The tensor for the parameter's gradient if it is needed, otherwise no_tensor: a kernel that computes the gradient in
// any case then writes it to memory that no op reads.
inline TensorId parameter_gradient_or_none(TensorId parameter, Differentiator& differentiator) {
  return differentiator.needs_gradient(parameter) ? differentiator.parameter_gradient(parameter) : no_tensor;
}

// Appends the fused activation to an op's attributes, if there is one.
inline void add_function(AttributeText& text, const ActivationFunction& function) {
  if (function.kind != ActivationKind::none) text.value("activation", to_string(function));
}

// in_place() of an op that computes the gradient with respect to a linear op's input: if it accumulates, its output
// uses the memory of its third input, to which it adds the gradient.
inline std::vector<InPlace> in_place_of(bool accumulate) {
  return accumulate ? std::vector<InPlace>{{2, 0}} : std::vector<InPlace>{};
}

// Emits the gradients of dense layers and convolutions: first the gradients of kernel and bias, so that their reduction
// can begin early, then the gradient with respect to the input.
template <class GradInput, class GradWeights>
void differentiate_linear(const Op& op, TensorId dy, GradInput grad_input, GradWeights grad_weights,
                          Differentiator& differentiator) {
  const bool bias = op.inputs.size() > 2;
  const bool needs_bias_gradient = bias && differentiator.needs_gradient(op.inputs[2]);
  if (differentiator.needs_gradient(op.inputs[1]) || needs_bias_gradient) {
    std::vector<TensorId> outputs{parameter_gradient_or_none(op.inputs[1], differentiator)};
    if (needs_bias_gradient) outputs.push_back(differentiator.parameter_gradient(op.inputs[2]));
    differentiator.emit_into(grad_weights(needs_bias_gradient), {op.inputs[0], dy}, outputs, op);
  }
  if (differentiator.needs_gradient(op.inputs[0])) {
    differentiator.contribute(op.inputs[0], differentiator.emit(grad_input(), {dy, op.inputs[1]}, op)[0]);
  }
}

}  // namespace trainctl
