// A rank's own part of a tensor along the last dimension.
#pragma once

#include "core/graph/op.h"

namespace trainctl {

// y = this rank's part of x along the last dimension: the gradient of all_gather_columns. Inputs: x [..., ranks * C],
// equal on all ranks of the axis. Outputs: y [..., C].
struct TakeColumns final : OpDef {
  MeshAxis axis = MeshAxis::data;
  int ranks = 1;  // along the axis
  int index = 0;  // of this rank among them

  TakeColumns(MeshAxis a, int r, int i) : axis(a), ranks(r), index(i) {}
  std::string_view kind() const override { return "take_columns"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType>, std::span<const TensorType>) const override { return 0; }
};

}  // namespace trainctl
