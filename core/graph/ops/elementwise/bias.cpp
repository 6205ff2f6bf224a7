// Shapes, placements and gradients of biases.
#include "core/graph/ops/elementwise/bias.h"

#include "core/graph/ops/attributes.h"
#include "core/graph/ops/backward.h"
#include "core/graph/ops/fusion.h"
#include "core/graph/placement_rules.h"

namespace trainctl {

std::string AddBias::attributes() const {
  AttributeText text;
  add_function(text, function);
  return text.text();
}

std::vector<TensorType> AddBias::outputs(std::span<const TensorType> inputs) const {
  require(inputs[1].shape == Shape{inputs[0].shape.back()}, "add_bias: the bias does not fit x");
  return {inputs[0]};
}

OutputPlacements AddBias::placements(const PlacementQuery& query) const {
  const std::string x = every_dimension(query.input_types[0]);
  return place_by({{x, x.substr(x.size() - 1)}, {x}}, query);
}

std::optional<Op> AddBias::fused_with(const Op& op, const Op& reader, std::size_t) const {
  return fused_with_activation(*this, op, reader);
}

void AddBias::differentiate(const Op& op, Differentiator& differentiator) const {
  const TensorId dy = gradient_before(function, op, differentiator);
  if (differentiator.needs_gradient(op.inputs[1])) {
    differentiator.emit_into(std::make_shared<BiasGrad>(differentiator.accumulate()), {dy},
                             {differentiator.parameter_gradient(op.inputs[1])}, op);
  }
  if (differentiator.needs_gradient(op.inputs[0])) differentiator.contribute(op.inputs[0], dy);
}

std::string BiasGrad::attributes() const { return AttributeText().flag("accumulate", accumulate).text(); }

std::vector<TensorType> BiasGrad::outputs(std::span<const TensorType> inputs) const {
  return {{{inputs[0].shape.back()}, DType::float32}};
}

OutputPlacements BiasGrad::placements(const PlacementQuery& query) const {
  const std::string row = rows(query.input_types[0]);
  return kept_if(accumulate, place_by({{row + "o+S"}, {"o+" + row + "S"}}, query), query);
}

double BiasGrad::flops(std::span<const TensorType> inputs, std::span<const TensorType>) const {
  return static_cast<double>(inputs[0].shape.count());
}

}  // namespace trainctl
