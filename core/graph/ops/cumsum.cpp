// Shapes, placements and gradients of cumulative sums.
#include "core/graph/ops/cumsum.h"

#include "core/graph/differentiator.h"
#include "core/graph/ops/along_axis.h"
#include "core/graph/ops/attributes.h"

namespace trainctl {

std::string CumulativeSum::attributes() const {
  return AttributeText().value("axis", axis).flag("reverse", reverse).text();
}

std::vector<TensorType> CumulativeSum::outputs(std::span<const TensorType> inputs) const {
  require(0 <= axis && axis < inputs[0].shape.rank(), "cumsum: x does not have this dimension");
  return {inputs[0]};
}

OutputPlacements CumulativeSum::placements(const PlacementQuery& query) const { return place_along(axis, query); }

void CumulativeSum::differentiate(const Op& op, Differentiator& differentiator) const {
  const TensorId dy = differentiator.gradient_of(op.outputs[0]);
  const auto back = std::make_shared<CumulativeSum>(axis, !reverse);
  differentiator.contribute(op.inputs[0], differentiator.emit(back, {dy}, op)[0]);
}

}  // namespace trainctl
