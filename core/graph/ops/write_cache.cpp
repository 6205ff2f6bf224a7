// Shapes and placements of writing into a cache.
#include "core/graph/ops/write_cache.h"

#include "core/graph/ops/attributes.h"
#include "core/graph/placement_rules.h"

namespace trainctl {

std::string WriteCache::attributes() const { return AttributeText().value("positions", positions).text(); }

std::vector<TensorType> WriteCache::outputs(std::span<const TensorType> inputs) const {
  const Shape& x = inputs[0].shape;
  require(x.rank() == 3 && inputs[1] == TensorType{{x[0]}, DType::int32},
          "write_cache: the inputs are not x [N, T, C] and starts int32 [N]");
  return {{{x[0], positions, x[2]}, inputs[0].dtype}};
}

OutputPlacements WriteCache::placements(const PlacementQuery& query) const {
  return place_by({{"a.c", "a"}, {"a.c"}}, query);
}

}  // namespace trainctl
