// The count of a micro-batch's samples, by which sums over samples become means.
#pragma once

#include "core/graph/op.h"

namespace trainctl {

// Inputs: int64 numbers of samples [N], of which those count that is_counted() names (core/tensor/sample_numbers.h), or
// float32 weights [N] or [N, P...], each of which counts as itself. Outputs: the count, float32 scalar, partial over
// the ranks' samples; of role reduced where it is the whole step's.
struct Count final : OpDef {
  bool accumulate = false;  // add to the output instead of overwriting it

  explicit Count(bool add) : accumulate(add) {}
  std::string_view kind() const override { return "count"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
};

}  // namespace trainctl
