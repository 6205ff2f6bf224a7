// Layer normalisation over the last dimension (Ba, Kiros and Hinton, 2016):
// y = gamma * (x - mean) / sqrt(variance + epsilon) + beta, with statistics for each row. If it is not centered, the
// mean is 0, and the variance is the mean of the squares: RMS normalisation (Zhang and Sennrich, 2019). With
// `residual`, x is the sum of two inputs, which is an output, too.
#pragma once

#include "core/graph/ops/normalization/norm.h"

namespace trainctl {

struct LayerNormAttributes : NormAttributes {
  bool centered = true;   // whether the mean is subtracted
  bool residual = false;  // whether x is a sum, see OpDef::joined_with()
};

// Inputs: x [..., C], [the other summand, like x], [gamma], [beta] (float32 [C]). Outputs: y, like x, then mean and
// 1 / sqrt(variance + epsilon) of each row, float32 [...], and [the sum, like x; in place on a summand]. The variance
// is biased.
struct LayerNorm final : OpDef {
  LayerNormAttributes a;

  explicit LayerNorm(LayerNormAttributes attributes) : a(attributes) {}
  std::string_view kind() const override { return "layer_norm"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
  std::vector<InPlace> in_place() const override;
  std::optional<Op> joined_with(const Op& op, const Op& writer) const override;
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

// Inputs: dy, x, [gamma], LayerNorm's mean and 1 / sqrt(variance + epsilon) of each row, and [another gradient of x, to
// which the op adds its own]. Outputs: dx, in place on that other gradient; [dgamma], [dbeta] (float32 [C], sums over
// the rows).
struct LayerNormGrad final : OpDef {
  LayerNormAttributes a;
  bool accumulate = false;  // add to dgamma and dbeta instead of overwriting them
  bool adds = false;        // whether there is another gradient of x

  LayerNormGrad(LayerNormAttributes attributes, bool add) : a(attributes), accumulate(add) {}
  // The number of the input that is the other gradient of x.
  int other() const { return 4 + a.scale; }
  std::string_view kind() const override { return "layer_norm_grad"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
  std::vector<InPlace> in_place() const override;
  std::optional<Op> fused_with(const Op& op, const Op& reader, std::size_t operand) const override;
};

}  // namespace trainctl
