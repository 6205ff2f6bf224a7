// Class numbers as rows with one value for each class.
#pragma once

#include <cstdint>

#include "core/graph/op.h"

namespace trainctl {

// Inputs: class numbers int32 [N, P...]. Outputs: float32 [N, P..., classes], 1 at the class and 0 elsewhere; only
// zeros for a number that is no class.
struct OneHot final : OpDef {
  std::int64_t classes = 0;

  explicit OneHot(std::int64_t c) : classes(c) {}
  std::string_view kind() const override { return "one_hot"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
};

}  // namespace trainctl
