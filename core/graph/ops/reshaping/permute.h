// The dimensions of samples in another order.
#pragma once

#include <vector>

#include "core/graph/op.h"

namespace trainctl {

// y[n, i_order[0], i_order[1], ...] = x[n, i_1, i_2, ...]: dimension k of y is dimension order[k] of x. Inputs: x.
// Outputs: y. Its gradient is the permutation back.
struct Permute final : OpDef {
  std::vector<std::int64_t>
      order;  // of all dimensions, counted from 0; the first, that of samples, stays: order[0] = 0

  explicit Permute(std::vector<std::int64_t> o) : order(std::move(o)) {}
  std::string_view kind() const override { return "permute"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType>, std::span<const TensorType>) const override { return 0; }
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

// A permutation as nested loops over y, the outermost first, whose loops are as few as possible: dimensions that stay
// neighbours are one loop. `strides` are x's, in elements.
struct PermutedLoops {
  std::vector<std::int64_t> sizes, strides;
};
PermutedLoops loops_of(const Shape& x, const std::vector<std::int64_t>& order);

}  // namespace trainctl
