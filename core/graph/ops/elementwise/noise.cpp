// Shapes, placements and gradients of noise.
#include "core/graph/ops/elementwise/noise.h"

#include "core/graph/differentiator.h"
#include "core/graph/ops/attributes.h"
#include "core/graph/placement_rules.h"

namespace trainctl {

std::string GaussianNoise::attributes() const {
  return AttributeText().value("stddev", stddev).value("seed", seed).value("layer", layer).text();
}

OutputPlacements GaussianNoise::placements(const PlacementQuery& query) const {
  // The noise is a function of the index of an element in the whole sample.
  const std::string x = samples(query.input_types[0]);
  return place_by({{x, "a", ""}, {x}}, query);
}

double GaussianNoise::flops(std::span<const TensorType>, std::span<const TensorType> outputs) const {
  return 10 * static_cast<double>(outputs[0].shape.count());
}

void GaussianNoise::differentiate(const Op& op, Differentiator& differentiator) const {
  differentiator.contribute(op.inputs[0], differentiator.gradient_of(op.outputs[0]));
}

}  // namespace trainctl
