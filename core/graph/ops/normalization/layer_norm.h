// Layer normalisation over the last dimension (Ba, Kiros and Hinton, 2016):
// y = gamma * (x - mean) / sqrt(variance + epsilon) + beta, with statistics for each row. If it is not centered, the
// mean is 0, and the variance is the mean of the squares: RMS normalisation (Zhang and Sennrich, 2019).
#pragma once

#include "core/graph/ops/normalization/norm.h"

namespace trainctl {

struct LayerNormAttributes : NormAttributes {
  bool centered = true;  // whether the mean is subtracted
};

// Inputs: x [..., C], [gamma], [beta] (float32 [C]). Outputs: y, like x, then mean and 1 / sqrt(variance + epsilon) of
// each row, float32 [...]; the variance is biased.
struct LayerNorm final : OpDef {
  LayerNormAttributes a;

  explicit LayerNorm(LayerNormAttributes attributes) : a(attributes) {}
  std::string_view kind() const override { return "layer_norm"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

// Inputs: dy, x, [gamma], and LayerNorm's mean and 1 / sqrt(variance + epsilon) of each row. Outputs: dx, [dgamma],
// [dbeta] (float32 [C], sums over the rows).
struct LayerNormGrad final : OpDef {
  LayerNormAttributes a;
  bool accumulate = false;  // add to dgamma and dbeta instead of overwriting them

  LayerNormGrad(LayerNormAttributes attributes, bool add) : a(attributes), accumulate(add) {}
  std::string_view kind() const override { return "layer_norm_grad"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
};

}  // namespace trainctl
