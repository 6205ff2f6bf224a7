// Counts the samples of a micro-batch, so that sums over samples can be divided by the count.
#pragma once

#include "core/graph/op.h"

namespace trainctl {

// Inputs: int64 sample numbers [N], or float32 weights [N] or [N, P...]. The op counts the sample numbers for which
// is_counted() is true (core/tensor/sample_numbers.h), or adds the weights. Outputs: the count, float32 scalar, a
// partial sum over the ranks' samples; with role reduced if it is the count of the whole step.
struct Count final : OpDef {
  bool accumulate = false;  // add to the output instead of overwriting it

  explicit Count(bool add) : accumulate(add) {}
  std::string_view kind() const override { return "count"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
};

}  // namespace trainctl
