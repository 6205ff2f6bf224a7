// Dense and convolution, forward and backward. Kernels and biases are float32 parameters; a backend that computes in
// another dtype or layout asks for a compute copy when it lowers the op. x, y, dx, dy share one dtype (float32,
// bfloat16).
#pragma once

#include <array>

#include "core/graph/ops/activations.h"

namespace trainctl {

// y = f(x kernel + bias). Inputs: x [N, in], kernel [in, out], bias [out] (optional). Outputs: y [N, out].
struct Dense final : OpDef {
  ActivationFunction function;

  explicit Dense(ActivationFunction f = {}) : function(f) {}
  std::string_view kind() const override { return "dense"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

// dx = dy kernel^T, times f' of the previous op's activation, or added to another gradient of x; not both. Inputs:
// dy [N, out], kernel [in, out], and, where function is not none, the y that the previous op's activation produced, or
// where it accumulates, what is added to (both like dx). Outputs: dx [N, in]. In place on what is added to.
struct DenseGradInput final : OpDef {
  ActivationFunction function;  // the previous op's activation whose gradient is fused; set by the fusion pass
  bool accumulate = false;      // set by the fusion pass

  explicit DenseGradInput(ActivationFunction f = {}, bool a = false) : function(f), accumulate(a) {}
  std::string_view kind() const override { return "dense_grad_input"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
  std::vector<InPlace> in_place() const override;
};

// dkernel (+)= x^T dy, dbias (+)= sum of dy over samples. Inputs: x [N, in], dy [N, out].
// Outputs: dkernel float32 [in, out], dbias float32 [out] (where bias). They are sums over the samples of the
// micro-batch.
struct DenseGradWeights final : OpDef {
  bool bias = true;
  bool accumulate = false;  // add to what the outputs hold (micro-batches after the first)

  DenseGradWeights(bool b, bool a) : bias(b), accumulate(a) {}
  std::string_view kind() const override { return "dense_grad_weights"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
};

// The window of a convolution or pooling. Padding in pixels, as resolved from same/valid/number.
struct Window {
  std::array<std::int64_t, 2> size{1, 1};  // height, width
  std::array<std::int64_t, 2> strides{1, 1};
  std::array<std::int64_t, 2> dilation{1, 1};
  std::array<std::int64_t, 2> padding_before{0, 0};  // top, left
  std::array<std::int64_t, 2> padding_after{0, 0};   // bottom, right

  // Rows or columns of the output for `input` rows or columns.
  std::int64_t output(int axis, std::int64_t input) const {
    const auto a = static_cast<std::size_t>(axis);
    const std::int64_t span = dilation[a] * (size[a] - 1) + 1;
    return (input + padding_before[a] + padding_after[a] - span) / strides[a] + 1;
  }
  bool operator==(const Window&) const = default;
};

// "3x3 strides=2x2 padding=0,0,1,1": only what differs from the default.
std::string to_string(const Window& window);

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
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

// Inputs: dy [N, H', W', O], kernel [kh, kw, C/groups, O], and, where it accumulates, another gradient of x that is
// added to. Outputs: dx [N, H, W, C]. In place on what is added to.
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
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
  std::vector<InPlace> in_place() const override;
};

// Inputs: x [N, H, W, C], dy [N, H', W', O]. Outputs: dkernel float32 [kh, kw, C/groups, O], dbias float32 [O] (where
// bias).
struct Conv2dGradWeights final : OpDef {
  Window window;
  std::int64_t groups = 1;
  bool bias = true;
  bool accumulate = false;

  Conv2dGradWeights(Window w, std::int64_t g, bool b, bool a) : window(w), groups(g), bias(b), accumulate(a) {}
  std::string_view kind() const override { return "conv2d_grad_weights"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
};

}  // namespace trainctl
