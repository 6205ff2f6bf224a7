// Convolutions, forward and backward.
// Kernels and biases are float32 parameters; a backend that computes in another dtype or layout asks for a compute copy
// when it lowers the op. x, y, dx, dy share one dtype (float32, bfloat16, float16).
// If the window is one pixel high, the kernel may be flat, without the height: [kw, C/groups, O], as for sequences. A
// depthwise kernel [kh, kw, 1, C * m] has the elements of Keras' [kh, kw, C, m] in the same order.
#pragma once

#include "core/graph/ops/elementwise/activations.h"
#include "core/graph/ops/images/window.h"

namespace trainctl {

// y = f(conv(x, kernel) + bias). Inputs: x [N, H, W, C], kernel [kh, kw, C/groups, O], bias [O] (optional).
// Outputs: y [N, H', W', O].
struct Conv2d final : OpDef {
  Window window;
  std::int64_t groups = 1;
  ActivationFunction function;

  Conv2d(Window w, std::int64_t g, ActivationFunction f = {}) : window(w), groups(g), function(f) {}
  std::string_view kind() const override { return "conv2d"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  int bias() const override { return 2; }
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
  std::optional<Op> fused_with(const Op& op, const Op& reader, std::size_t operand) const override;
  bool may_hide_nan() const override { return function.kind != ActivationKind::none; }
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

// Inputs: dy [N, H', W', O], kernel [kh, kw, C/groups, O] and, if the op accumulates, another gradient of x, to which
// it adds its result. Outputs: dx [N, H, W, C]. The op can run in place on the other gradient.
// As a forward op it is a transposed convolution from O to C channels, and has gradients.
struct Conv2dGradInput final : OpDef {
  Window window;
  std::int64_t groups = 1;
  Shape input;              // [N, H, W, C]
  bool accumulate = false;  // set by the fusion pass

  Conv2dGradInput(Window w, std::int64_t g, Shape x, bool a = false)
      : window(w), groups(g), input(std::move(x)), accumulate(a) {}
  std::string_view kind() const override { return "conv2d_grad_input"; }
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

// Inputs: x [N, H, W, C], dy [N, H', W', O]. Outputs: dkernel float32 [kh, kw, C/groups, O], or [kw, C/groups, O] for a
// flat kernel, dbias float32 [O] (if `bias`).
struct Conv2dGradWeights final : OpDef {
  Window window;
  std::int64_t groups = 1;
  bool bias = true;
  bool accumulate = false;
  bool flat = false;  // whether the kernel has no dimension for the height

  Conv2dGradWeights(Window w, std::int64_t g, bool b, bool a, bool f = false)
      : window(w), groups(g), bias(b), accumulate(a), flat(f) {}
  std::string_view kind() const override { return "conv2d_grad_weights"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
};

}  // namespace trainctl
