// Element-wise ops: activations and their gradients, sums, dropout, casts, and the softmax.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/graph/op.h"

namespace trainctl {

// As in Keras. leaky_relu has slope 0.3 (Keras 3: negative_slope = 0.3) unless it is stated; gelu is the exact one
// (erf).
enum class ActivationKind { none, relu, leaky_relu, gelu, silu, tanh, sigmoid };

std::string_view name_of(ActivationKind kind);

// Whether the gradient is computed from the output y (relu, leaky_relu, tanh, sigmoid) or from the input x (gelu,
// silu).
constexpr bool gradient_uses_output(ActivationKind kind) {
  return kind == ActivationKind::relu || kind == ActivationKind::leaky_relu || kind == ActivationKind::tanh ||
         kind == ActivationKind::sigmoid;
}

struct ActivationFunction {
  ActivationKind kind = ActivationKind::none;
  float slope = 0.3f;  // leaky_relu only

  bool operator==(const ActivationFunction&) const = default;
};

// "relu", "leaky_relu(0.3)".
std::string to_string(const ActivationFunction& function);

// y = f(x). Inputs: x. Outputs: y, like x. In place.
struct Activation final : OpDef {
  ActivationFunction function;

  explicit Activation(ActivationFunction f) : function(f) {}
  std::string_view kind() const override { return "activation"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
  std::vector<InPlace> in_place() const override { return {{0, 0}}; }
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

// dx = dy * f'. Inputs: dy, and y or x (see gradient_uses_output). Outputs: dx, like dy. In place on dy.
struct ActivationGrad final : OpDef {
  ActivationFunction function;

  explicit ActivationGrad(ActivationFunction f) : function(f) {}
  std::string_view kind() const override { return "activation_grad"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  std::vector<InPlace> in_place() const override { return {{0, 0}}; }
};

// y = softmax of x over the last dimension. Inputs: x. Outputs: y, like x. In place.
struct Softmax final : OpDef {
  std::string_view kind() const override { return "softmax"; }
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  std::vector<InPlace> in_place() const override { return {{0, 0}}; }
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

// dx = y * (dy - sum(dy * y)). Inputs: dy, y. Outputs: dx, like dy. In place on dy.
struct SoftmaxGrad final : OpDef {
  std::string_view kind() const override { return "softmax_grad"; }
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  std::vector<InPlace> in_place() const override { return {{0, 0}}; }
};

// How the values of samples lie in a batch, and what a network's input is made of them: scale * x + offset, for each
// channel (each element of the last dimension) or one for all. Without scales they are the input as they are.
struct SampleFormat {
  DType dtype = DType::float32;  // or uint8
  std::vector<float> scale, offset;
};

// y = scale * x + offset. Inputs: x, uint8 or float32. Outputs: y, in dtype `to`.
struct Normalize final : OpDef {
  DType to;
  std::vector<float> scale, offset;  // as in SampleFormat

  Normalize(DType dtype, const SampleFormat& format) : to(dtype), scale(format.scale), offset(format.offset) {}
  std::string_view kind() const override { return "normalize"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override { return {{inputs[0].shape, to}}; }
};

// y = f(a + b), equal shapes. Inputs: a, b. Outputs: y. In place on either. Also sums gradients of a tensor used twice.
struct Add final : OpDef {
  ActivationFunction function;

  explicit Add(ActivationFunction f = {}) : function(f) {}
  std::string_view kind() const override { return "add"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  std::vector<InPlace> in_place() const override { return {{0, 0}, {1, 0}}; }
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

// y = x * mask / (1 - rate), the mask a function of (seed, step, sample number, layer, element): element e of a sample
// uses word e % 4 of RandomKey{seed, Purpose::dropout, step, layer}.block(sample, e / 4), kept when uniform01(word) >=
// rate. Inputs: x [N, ...], sample numbers int64 [N], step int64 scalar. Outputs: y, like x. In place. Its gradient is
// itself on dy.
struct Dropout final : OpDef {
  float rate = 0;
  std::uint64_t seed = 0;
  std::uint32_t layer = 0;  // name_hash of the layer's path

  Dropout(float r, std::uint64_t s, std::uint32_t l) : rate(r), seed(s), layer(l) {}
  std::string_view kind() const override { return "dropout"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  std::vector<InPlace> in_place() const override { return {{0, 0}}; }
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

// Inputs: x. Outputs: the same values in another dtype (float32, bfloat16; rounding to nearest even).
struct Cast final : OpDef {
  DType to;

  explicit Cast(DType dtype) : to(dtype) {}
  std::string_view kind() const override { return "cast"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

}  // namespace trainctl
