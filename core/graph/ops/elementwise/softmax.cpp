// Shapes, placements and gradients of softmax.
#include "core/graph/ops/elementwise/softmax.h"

#include "core/graph/differentiator.h"
#include "core/graph/placement_rules.h"

namespace trainctl {

std::vector<TensorType> Softmax::outputs(std::span<const TensorType> inputs) const { return {inputs[0]}; }

OutputPlacements Softmax::placements(const PlacementQuery& query) const { return place_rows(query, false); }

void Softmax::differentiate(const Op& op, Differentiator& differentiator) const {
  const TensorId dy = differentiator.gradient_of(op.outputs[0]);
  const auto dx = differentiator.emit(std::make_shared<SoftmaxGrad>(), {dy, op.outputs[0]}, op);
  differentiator.contribute(op.inputs[0], dx[0]);
}

std::vector<TensorType> SoftmaxGrad::outputs(std::span<const TensorType> inputs) const { return {inputs[0]}; }

OutputPlacements SoftmaxGrad::placements(const PlacementQuery& query) const {
  const std::string row = rows(query.input_types[0]) + ".";
  return place_by({{row + "+S", row}, {row + "+S"}}, query);
}

}  // namespace trainctl
