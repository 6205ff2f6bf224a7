// Gives tensors that a step changed before its forward pass their earlier values if the step is skipped.
#pragma once

#include "core/graph/op.h"

namespace trainctl {

// y = x if the flag agree_not_finite is set or the norm is not finite; otherwise y does not change. Inputs: x
// (float32), agree flags, gradient norm. Outputs: y, like x.
struct Restore final : OpDef {
  std::string_view kind() const override { return "restore"; }
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override { return {inputs[0]}; }
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType>, std::span<const TensorType>) const override { return 0; }
};

}  // namespace trainctl
