// Max, average and global average pooling, forward and backward.
#pragma once

#include <optional>
#include <utility>

#include "core/graph/op.h"
#include "core/graph/ops/images/window.h"

namespace trainctl {

// Padding does not count in averages, as in Keras.
enum class PoolMode { max, average };

// Inputs: x [N, H, W, C]. Outputs: y [N, H', W', C]; max pooling in training also outputs the winner's index within its
// window (row * width + column), uint8, with the shape of y (layers reject windows of more than 256 pixels). With
// `relu`, which only max pooling can have, y = relu(maximum), and the index is no_winner where the maximum is not above
// 0, so that no pixel gets the gradient of such an output.
struct Pool2d final : OpDef {
  static constexpr int no_winner = 255;

  PoolMode mode;
  Window window;
  bool training = false;
  bool relu = false;  // set by the fusion pass

  Pool2d(PoolMode m, Window w, bool t, bool r = false) : mode(m), window(w), training(t), relu(r) {}
  std::string_view kind() const override { return "pool2d"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

// Moves a relu that an op (conv2d, add, add_bias) applies to its result to the max pooling that alone reads the result.
// The maximum of relus is the relu of the maximum, and there are fewer outputs than inputs. Returns both ops, or
// nothing if `reader` is no max pooling, if its windows have more than no_winner pixels, or if `op` applies no relu.
std::optional<std::pair<Op, Op>> move_relu_after_pooling(const Op& op, const Op& reader);

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
