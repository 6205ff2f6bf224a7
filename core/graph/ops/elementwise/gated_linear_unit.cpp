// Shapes, placements and gradients of gated linear units.
#include "core/graph/ops/elementwise/gated_linear_unit.h"

#include "core/graph/differentiator.h"
#include "core/graph/placement_rules.h"

namespace trainctl {
namespace {

double activation_flops(const ActivationFunction& function, std::span<const TensorType> types) {
  return Activation(function).flops(types, types.first(1));
}

}  // namespace

std::string GatedLinearUnit::attributes() const { return "activation=" + to_string(function); }

std::vector<TensorType> GatedLinearUnit::outputs(std::span<const TensorType> inputs) const {
  require(inputs.size() == 2 && inputs[0] == inputs[1],
          "gated_linear_unit: gate and up are not two tensors of equal shape and dtype");
  return {inputs[0]};
}

OutputPlacements GatedLinearUnit::placements(const PlacementQuery& query) const { return place_elementwise(query); }

double GatedLinearUnit::flops(std::span<const TensorType> inputs, std::span<const TensorType>) const {
  return activation_flops(function, inputs) + static_cast<double>(inputs[0].shape.count());
}

void GatedLinearUnit::differentiate(const Op& op, Differentiator& differentiator) const {
  const TensorId dy = differentiator.gradient_of(op.outputs[0]);
  const auto gradients =
      differentiator.emit(std::make_shared<GatedLinearUnitGrad>(function), {dy, op.inputs[0], op.inputs[1]}, op);
  for (const std::size_t i : {0u, 1u}) {
    if (differentiator.needs_gradient(op.inputs[i])) differentiator.contribute(op.inputs[i], gradients[i]);
  }
}

std::string GatedLinearUnitGrad::attributes() const { return "activation=" + to_string(function); }

std::vector<TensorType> GatedLinearUnitGrad::outputs(std::span<const TensorType> inputs) const {
  return {inputs[0], inputs[0]};
}

OutputPlacements GatedLinearUnitGrad::placements(const PlacementQuery& query) const {
  OutputPlacements result = place_elementwise(query, {0});
  if (result.problem.empty()) result.outputs.push_back(result.outputs[0]);
  return result;
}

double GatedLinearUnitGrad::flops(std::span<const TensorType> inputs, std::span<const TensorType>) const {
  return 2 * activation_flops(function, inputs) + 3 * static_cast<double>(inputs[0].shape.count());
}

}  // namespace trainctl
