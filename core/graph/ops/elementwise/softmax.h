// Softmax over the last dimension, and its gradient.
#pragma once

#include "core/graph/op.h"

namespace trainctl {

// y = softmax of x over the last dimension. Inputs: x. Outputs: y, like x. In place.
struct Softmax final : OpDef {
  std::string_view kind() const override { return "softmax"; }
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  std::vector<InPlace> in_place() const override { return {{0, 0}}; }
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

// dx = y * (dy - sum(dy * y)). Inputs: dy, y. Outputs: dx, like dy. In place on dy.
struct SoftmaxGrad final : OpDef {
  std::string_view kind() const override { return "softmax_grad"; }
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  std::vector<InPlace> in_place() const override { return {{0, 0}}; }
};

}  // namespace trainctl
