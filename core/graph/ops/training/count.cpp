// Shapes and placements of Count.
#include "core/graph/ops/training/count.h"

#include "core/graph/ops/attributes.h"
#include "core/graph/placement_rules.h"

namespace trainctl {

std::string Count::attributes() const { return AttributeText().flag("accumulate", accumulate).text(); }

std::vector<TensorType> Count::outputs(std::span<const TensorType>) const { return {{{}, DType::float32}}; }

OutputPlacements Count::placements(const PlacementQuery& query) const {
  const std::string counted = every_dimension(query.input_types[0]);
  return kept_if(accumulate, place_by({{counted}, {"+" + counted}}, query), query);
}

}  // namespace trainctl
