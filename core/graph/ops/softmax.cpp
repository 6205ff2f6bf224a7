// Rules of the softmax.
#include "core/graph/ops/softmax.h"

#include "core/graph/graph.h"

namespace trainctl {

std::vector<TensorType> Softmax::outputs(std::span<const TensorType> inputs) const { return {inputs[0]}; }

void Softmax::differentiate(const Op& op, Differentiator& differentiator) const {
  const TensorId dy = differentiator.gradient_of(op.outputs[0]);
  const auto dx = differentiator.emit(std::make_shared<SoftmaxGrad>(), {dy, op.outputs[0]}, op);
  differentiator.contribute(op.inputs[0], dx[0]);
}

std::vector<TensorType> SoftmaxGrad::outputs(std::span<const TensorType> inputs) const { return {inputs[0]}; }

}  // namespace trainctl
