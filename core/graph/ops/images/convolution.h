// Convolutions over images (2 axes: height, width) and volumes (3 axes: depth, height, width), forward and backward.
// Kernels and biases are float32 parameters; a backend that computes in another dtype or layout asks for a compute copy
// when it lowers the op. x, y, dx, dy share one dtype (float32, bfloat16, float16). P... stands for the positions along
// the axes, and k... for the sizes of the window: x [N, P..., C] is [N, H, W, C] for images and [N, D, H, W, C] for
// volumes.
// If the size of the window along the first axis is 1, the kernel may be flat, without that dimension: [kw, C/groups,
// O] for images one pixel high, as for sequences. A depthwise kernel [k..., 1, C * m] has the elements of Keras' [k...,
// C, m] in the same order.
#pragma once

#include "core/graph/ops/elementwise/activations.h"
#include "core/graph/ops/images/window.h"

namespace trainctl {

// y = f(conv(x, kernel) + bias). Inputs: x [N, P..., C], kernel [k..., C/groups, O], bias [O] (optional).
// Outputs: y [N, P'..., O].
template <std::size_t axes>
struct Conv final : OpDef {
  WindowOf<axes> window;
  std::int64_t groups = 1;
  ActivationFunction function;

  Conv(WindowOf<axes> w, std::int64_t g, ActivationFunction f = {}) : window(w), groups(g), function(f) {}
  std::string_view kind() const override { return axes == 2 ? "conv2d" : "conv3d"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  int bias() const override { return 2; }
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
  std::optional<Op> fused_with(const Op& op, const Op& reader, std::size_t operand) const override;
  bool may_hide_nan() const override { return function.kind != ActivationKind::none; }
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

// Inputs: dy [N, P'..., O], kernel [k..., C/groups, O] and, if the op accumulates, another gradient of x, to which it
// adds its result. Outputs: dx [N, P..., C]. The op can run in place on the other gradient.
// As a forward op it is a transposed convolution from O to C channels, and has gradients.
template <std::size_t axes>
struct ConvGradInput final : OpDef {
  WindowOf<axes> window;
  std::int64_t groups = 1;
  Shape input;              // [N, P..., C]
  bool accumulate = false;  // set by the fusion pass

  ConvGradInput(WindowOf<axes> w, std::int64_t g, Shape x, bool a = false)
      : window(w), groups(g), input(std::move(x)), accumulate(a) {}
  std::string_view kind() const override { return axes == 2 ? "conv2d_grad_input" : "conv3d_grad_input"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  std::shared_ptr<const OpDef> on_shard(std::span<const TensorType> inputs, std::span<const std::optional<int>> split,
                                        const ShardPosition& ranks) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
  std::optional<Op> fused_with(const Op& op, const Op& reader, std::size_t operand) const override;
  void differentiate(const Op& op, Differentiator& differentiator) const override;
  std::vector<InPlace> in_place() const override;
};

// Inputs: x [N, P..., C], dy [N, P'..., O]. Outputs: dkernel float32 [k..., C/groups, O], or without the first
// dimension for a flat kernel, dbias float32 [O] (if `bias`).
template <std::size_t axes>
struct ConvGradWeights final : OpDef {
  WindowOf<axes> window;
  std::int64_t groups = 1;
  bool bias = true;
  bool accumulate = false;
  bool flat = false;  // whether the kernel has no dimension for the first axis

  ConvGradWeights(WindowOf<axes> w, std::int64_t g, bool b, bool a, bool f = false)
      : window(w), groups(g), bias(b), accumulate(a), flat(f) {}
  std::string_view kind() const override { return axes == 2 ? "conv2d_grad_weights" : "conv3d_grad_weights"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
};

using Conv2d = Conv<2>;
using Conv2dGradInput = ConvGradInput<2>;
using Conv2dGradWeights = ConvGradWeights<2>;
using Conv3d = Conv<3>;
using Conv3dGradInput = ConvGradInput<3>;
using Conv3dGradWeights = ConvGradWeights<3>;

}  // namespace trainctl
