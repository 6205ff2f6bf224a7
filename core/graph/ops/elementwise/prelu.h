// Parametric ReLU (He et al., 2015): y = x where x > 0 and y = alpha * x elsewhere, with learned slopes alpha.
#pragma once

#include "core/graph/op.h"

namespace trainctl {

// Inputs: x [N, P..., C], alpha float32 [P..., C], or [1..., C] (of the same rank) if it is shared. Outputs: y, like x.
// In place.
struct PRelu final : OpDef {
  bool shared = false;  // whether all positions of a channel have the same alpha

  explicit PRelu(bool by_channel) : shared(by_channel) {}
  std::string_view kind() const override { return "prelu"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  std::vector<InPlace> in_place() const override { return {{0, 0}}; }
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

// Inputs: dy, x, alpha. Outputs: dx, like x, and dalpha, like alpha: sums of dy * x over the elements with x <= 0. In
// place on dy.
struct PReluGrad final : OpDef {
  bool shared = false;
  bool accumulate = false;  // add to dalpha instead of overwriting it

  PReluGrad(bool by_channel, bool add) : shared(by_channel), accumulate(add) {}
  std::string_view kind() const override { return "prelu_grad"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
  std::vector<InPlace> in_place() const override { return {{0, 0}}; }
};

}  // namespace trainctl
