// Max, average and global average pooling, forward and backward.
#pragma once

#include "core/graph/op.h"
#include "core/graph/ops/images/window.h"

namespace trainctl {

// Padding does not count in averages, as in Keras.
enum class PoolMode { max, average };

// Inputs: x [N, H, W, C]. Outputs: y [N, H', W', C]; max pooling in training also outputs the winner's index within its
// window (row * width + column), uint8, with the shape of y (layers reject windows of more than 256 pixels).
struct Pool2d final : OpDef {
  PoolMode mode;
  Window window;
  bool training = false;

  Pool2d(PoolMode m, Window w, bool t) : mode(m), window(w), training(t) {}
  std::string_view kind() const override { return "pool2d"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

// Inputs: dy [N, H', W', C]; for max also the winners. Outputs: dx [N, H, W, C].
struct Pool2dGrad final : OpDef {
  PoolMode mode;
  Window window;
  Shape input;  // [N, H, W, C]

  Pool2dGrad(PoolMode m, Window w, Shape x) : mode(m), window(w), input(std::move(x)) {}
  std::string_view kind() const override { return "pool2d_grad"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
};

// Inputs: x [N, H, W, C]. Outputs: the mean over H and W, [N, C].
struct GlobalAveragePool2d final : OpDef {
  std::string_view kind() const override { return "global_average_pool2d"; }
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

// Inputs: dy [N, C]. Outputs: dx [N, H, W, C].
struct GlobalAveragePool2dGrad final : OpDef {
  Shape input;  // [N, H, W, C]

  explicit GlobalAveragePool2dGrad(Shape x) : input(std::move(x)) {}
  std::string_view kind() const override { return "global_average_pool2d_grad"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
};

}  // namespace trainctl
