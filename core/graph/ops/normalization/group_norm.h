// Group normalisation (Wu and He, 2018): y = gamma * (x - mean) / sqrt(variance + epsilon) + beta, with statistics for
// each sample and each group of neighbouring channels, over all positions.
#pragma once

#include <cstdint>

#include "core/graph/ops/normalization/norm.h"

namespace trainctl {

struct GroupNormAttributes : NormAttributes {
  std::int64_t groups = 32;  // number of groups, a divisor of the number of channels
};

// Inputs: x [N, P..., C], [gamma], [beta] (float32 [C]). Outputs: y, like x, then mean and 1 / sqrt(variance + epsilon)
// of each group, float32 [N, groups]; the variance is biased. In place.
struct GroupNorm final : OpDef {
  GroupNormAttributes a;

  explicit GroupNorm(GroupNormAttributes attributes) : a(attributes) {}
  std::string_view kind() const override { return "group_norm"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
  std::vector<InPlace> in_place() const override { return {{0, 0}}; }
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

// Inputs: dy, x, [gamma], and GroupNorm's mean and 1 / sqrt(variance + epsilon). Outputs: dx, [dgamma], [dbeta]
// (float32 [C], sums over samples and positions). In place on dy.
struct GroupNormGrad final : OpDef {
  GroupNormAttributes a;
  bool accumulate = false;  // add to dgamma and dbeta instead of overwriting them

  GroupNormGrad(GroupNormAttributes attributes, bool add) : a(attributes), accumulate(add) {}
  std::string_view kind() const override { return "group_norm_grad"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
  std::vector<InPlace> in_place() const override { return {{0, 0}}; }
};

}  // namespace trainctl
