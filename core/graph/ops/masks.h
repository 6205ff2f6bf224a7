// Padding masks: uint8 [N, P...], which are 0 at the positions of a sample that are padding and 1 at all others. The
// ops make masks, combine them, and apply them to values, means and weights.
#pragma once

#include <cstdint>
#include <optional>

#include "core/graph/op.h"

namespace trainctl {

// mask = 1 where a token, or any value of a position, differs from `padding`. Inputs: tokens int32 [N, P...], or values
// [N, P..., C]. Outputs: mask uint8 [N, P...].
struct PositionMask final : OpDef {
  float padding = 0;

  explicit PositionMask(float value) : padding(value) {}
  std::string_view kind() const override { return "position_mask"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
};

// The mask that is 1 where any of the masks is 1 or, if `all`, where all of them are. Inputs: two masks uint8 of one
// shape. Outputs: mask, like the inputs.
struct MergeMasks final : OpDef {
  bool all = false;

  explicit MergeMasks(bool all_masks) : all(all_masks) {}
  std::string_view kind() const override { return "merge_masks"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
};

// y = x where the mask is 1, and 0 where it is 0. Inputs: x [N, P..., C], mask uint8 [N, P...]. Outputs: y, like x; in
// place. The op also computes its own gradient.
struct MaskPositions final : OpDef {
  std::string_view kind() const override { return "mask_positions"; }
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  std::vector<InPlace> in_place() const override { return {{0, 0}}; }
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

// The mean of a sample's values over the positions whose mask is 1; 0 if there are none. Inputs: x [N, T, C], mask
// uint8 [N, T]. Outputs: y [N, C], with the dtype of x.
struct MaskedMean final : OpDef {
  std::string_view kind() const override { return "masked_mean"; }
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

// Inputs: dy [N, C], mask uint8 [N, T]. Outputs: dx [N, T, C], with the dtype of dy.
struct MaskedMeanGrad final : OpDef {
  std::string_view kind() const override { return "masked_mean_grad"; }
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
};

// The weights of an output's positions in losses and metrics. A position counts if its mask is 1, its target is not
// `ignored`, and its sample is_counted() (core/tensor/sample_numbers.h). Inputs: weights float32 [N] or
// [N, P...], samples int64 [N]; then mask uint8 [N, P...] if `masked`, and targets int32 [N, P...] if there is an
// ignored class; without both, the positions are those of the weights. Outputs, float32 [N, P...]: the weight of a
// position that counts, else 0; 1 for a position that counts, else 0.
struct MaskWeights final : OpDef {
  bool masked = false;
  std::optional<std::int32_t> ignored;

  MaskWeights(bool has_mask, std::optional<std::int32_t> ignored_class) : masked(has_mask), ignored(ignored_class) {}
  std::string_view kind() const override { return "mask_weights"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
};

}  // namespace trainctl
