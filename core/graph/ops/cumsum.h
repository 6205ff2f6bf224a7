// Sums of all elements up to each one.
#pragma once

#include "core/graph/op.h"

namespace trainctl {

// y[..., i, ...] = the sum of x[..., k, ...] over k <= i along dimension `axis`, or over k >= i if `reverse` is set.
// The sums are added in float64, in order. Inputs: x. Outputs: y, like x. Its gradient is the op with the other
// direction.
struct CumulativeSum final : OpDef {
  int axis = 0;
  bool reverse = false;

  CumulativeSum(int a, bool r) : axis(a), reverse(r) {}
  std::string_view kind() const override { return "cumsum"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

}  // namespace trainctl
