// Global max pooling, the largest value of each channel of an image, and its gradient.
#pragma once

#include "core/graph/op.h"

namespace trainctl {

// Inputs: x [N, H, W, C]. Outputs: y [N, C], the largest over H and W; in training also the winner, int32 [N, C]: the
// index (row * width + column) of the first pixel with this value. NaN counts as larger than all numbers.
struct GlobalMaxPool2d final : OpDef {
  bool training = false;

  explicit GlobalMaxPool2d(bool t) : training(t) {}
  std::string_view kind() const override { return "global_max_pool2d"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

// Inputs: dy [N, C], winners int32 [N, C]. Outputs: dx [N, H, W, C], which is dy at the winners and 0 elsewhere.
struct GlobalMaxPool2dGrad final : OpDef {
  Shape input;  // [N, H, W, C]

  explicit GlobalMaxPool2dGrad(Shape x) : input(std::move(x)) {}
  std::string_view kind() const override { return "global_max_pool2d_grad"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
};

}  // namespace trainctl
