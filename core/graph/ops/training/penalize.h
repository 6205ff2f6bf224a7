// Penalties on the size of parameters.
#pragma once

#include "core/graph/op.h"

namespace trainctl {

// Adds the gradient of count * (l1 * sum |w| + l2 * sum w^2) to a parameter's gradient, where `count` is that of a
// micro-batch (core/graph/ops/training/count.h): the mean over all samples then has the gradient of the penalty once.
// Inputs: the parameter w, the count (float32 scalar) and, where losses are scaled, the factor (likewise). Outputs: the
// gradient, like w, which the op adds to.
struct Penalize final : OpDef {
  Penalty penalty;

  explicit Penalize(Penalty p) : penalty(p) {}
  std::string_view kind() const override { return "penalize"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override { return {inputs[0]}; }
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
};

}  // namespace trainctl
