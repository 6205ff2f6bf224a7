// Writes the keys or values of new positions into a cache of all positions, from which attention reads them.
#pragma once

#include "core/graph/op.h"

namespace trainctl {

// cache[n, starts[n] + t] = x[n, t]; the other rows of the cache stay as they are, and rows after its end are not
// written. Inputs: x [N, T, C], starts int32 [N]. Outputs: the cache [N, positions, C], with the dtype of x.
struct WriteCache final : OpDef {
  std::int64_t positions = 0;

  explicit WriteCache(std::int64_t p) : positions(p) {}
  std::string_view kind() const override { return "write_cache"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType>, std::span<const TensorType>) const override { return 0; }
};

}  // namespace trainctl
