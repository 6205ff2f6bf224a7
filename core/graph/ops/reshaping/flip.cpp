// Shapes, placements and gradients of flips.
#include "core/graph/ops/reshaping/flip.h"

#include "core/graph/differentiator.h"
#include "core/graph/ops/along_axis.h"
#include "core/graph/ops/attributes.h"

namespace trainctl {

std::string Flip::attributes() const { return AttributeText().value("axis", axis).text(); }

std::vector<TensorType> Flip::outputs(std::span<const TensorType> inputs) const {
  require(0 <= axis && axis < inputs[0].shape.rank(), "flip: x does not have this dimension");
  return {inputs[0]};
}

OutputPlacements Flip::placements(const PlacementQuery& query) const { return place_along(axis, query); }

void Flip::differentiate(const Op& op, Differentiator& differentiator) const {
  const TensorId dy = differentiator.gradient_of(op.outputs[0]);
  differentiator.contribute(op.inputs[0], differentiator.emit(std::make_shared<Flip>(axis), {dy}, op)[0]);
}

}  // namespace trainctl
