// Reverses the order of elements along a dimension.
#pragma once

#include "core/graph/op.h"

namespace trainctl {

// y[..., i, ...] = x[..., n - 1 - i, ...] along dimension `axis`, which has n elements. Inputs: x. Outputs: y, like x.
// Its gradient is the same op.
struct Flip final : OpDef {
  int axis = 0;

  explicit Flip(int a) : axis(a) {}
  std::string_view kind() const override { return "flip"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType>, std::span<const TensorType>) const override { return 0; }
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

}  // namespace trainctl
