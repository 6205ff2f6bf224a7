// Permutes the dimensions of samples.
#pragma once

#include <vector>

#include "core/graph/op.h"

namespace trainctl {

// y[n, i_order[0], i_order[1], ...] = x[n, i_1, i_2, ...]: dimension k of y is dimension order[k] of x. Inputs: x.
// Outputs: y. Its gradient is the inverse permutation.
struct Permute final : OpDef {
  // All dimensions, counted from 0. The dimension of samples stays first: order[0] = 0.
  std::vector<std::int64_t> order;

  explicit Permute(std::vector<std::int64_t> o) : order(std::move(o)) {}
  std::string_view kind() const override { return "permute"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType>, std::span<const TensorType>) const override { return 0; }
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

// A permutation as nested loops over y, the outermost loop first. The number of loops is minimal: dimensions that are
// adjacent in x and y share a loop. `strides` are the strides in x, in elements.
struct PermutedLoops {
  std::vector<std::int64_t> sizes, strides;
};
PermutedLoops loops_of(const Shape& x, const std::vector<std::int64_t>& order);

}  // namespace trainctl
