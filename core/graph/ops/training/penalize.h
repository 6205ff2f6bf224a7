// L1 and L2 penalties on parameters.
#pragma once

#include "core/graph/op.h"

namespace trainctl {

// Adds the gradient of count * (l1 * sum |w| + l2 * sum w^2) to the gradient of a parameter, where `count` is the count
// of a micro-batch (core/graph/ops/training/count.h): the mean over all samples then includes the gradient of the
// penalty once. Inputs: the parameter w, the count (float32 scalar) and, if losses are scaled, the scale (float32
// scalar). Outputs: the gradient, like w, to which the op adds.
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
