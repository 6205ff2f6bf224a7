// Shapes and placements of MovingAverage.
#include "core/graph/ops/training/moving_average.h"

#include "core/graph/ops/attributes.h"
#include "core/graph/placement_rules.h"

namespace trainctl {

std::string MovingAverage::attributes() const {
  return AttributeText()
      .value("momentum", momentum)
      .value("count", count)
      .flag("has_initial_values", has_initial_values)
      .text();
}

std::vector<TensorType> MovingAverage::outputs(std::span<const TensorType>) const {
  return {{{count}, DType::float32}};
}

// Averages have the placements of their parameters.
OutputPlacements MovingAverage::placements(const PlacementQuery& query) const {
  const std::string region = every_dimension(query.input_types[0]);
  return kept(place_by({{region, "", ".", ""}, {region}}, query), query, 0, 1);
}

}  // namespace trainctl
