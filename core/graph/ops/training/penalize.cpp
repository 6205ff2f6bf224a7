// Shapes and placements of Penalize.
#include "core/graph/ops/training/penalize.h"

#include "core/graph/ops/attributes.h"
#include "core/graph/placement_rules.h"

namespace trainctl {

std::string Penalize::attributes() const {
  AttributeText text;
  if (penalty.l1 != 0) text.value("l1", penalty.l1);
  if (penalty.l2 != 0) text.value("l2", penalty.l2);
  return text.text();
}

OutputPlacements Penalize::placements(const PlacementQuery& query) const {
  const std::string w = every_dimension(query.input_types[0]);
  PlacementRule rule{{w, "+z"}, {w + "+z"}};
  if (query.inputs.size() > 2) rule.inputs.emplace_back();
  return kept(place_by(rule, query), query, 0, 1);
}

double Penalize::flops(std::span<const TensorType> inputs, std::span<const TensorType>) const {
  return 4 * static_cast<double>(inputs[0].shape.count());
}

}  // namespace trainctl
