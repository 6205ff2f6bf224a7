// Rules of dropout.
#include "core/graph/ops/dropout.h"

#include "core/graph/graph.h"
#include "core/graph/ops/attributes.h"

namespace trainctl {

std::string Dropout::attributes() const {
  return AttributeText().value("rate", rate).value("seed", seed).value("layer", layer).text();
}

std::vector<TensorType> Dropout::outputs(std::span<const TensorType> inputs) const { return {inputs[0]}; }

void Dropout::differentiate(const Op& op, Differentiator& differentiator) const {
  const TensorId dy = differentiator.gradient_of(op.outputs[0]);
  const auto dx = differentiator.emit(op.def, {dy, op.inputs[1], op.inputs[2]}, op);
  differentiator.contribute(op.inputs[0], dx[0]);
}

}  // namespace trainctl
