// Placements of Restore.
#include "core/graph/ops/training/restore.h"

#include "core/graph/placement_rules.h"

namespace trainctl {

OutputPlacements Restore::placements(const PlacementQuery& query) const {
  const std::string x = every_dimension(query.input_types[0]);
  return kept(place_by({{x, ".", ""}, {x}}, query), query, 0, 1);
}

}  // namespace trainctl
