// Elementwise activations and their gradients, and sums of two tensors.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/graph/op.h"

namespace trainctl {

// The activations of Keras 3. gelu is the exact formula (erf), gelu_tanh its approximation by tanh (Hendrycks and
// Gimpel, 2016), hard_sigmoid is relu6(x + 3) / 6, and hard_swish is x times hard_sigmoid.
enum class ActivationKind {
  none,
  relu,
  relu6,
  leaky_relu,
  elu,
  selu,
  gelu,
  gelu_tanh,
  silu,
  mish,
  hard_swish,
  tanh,
  sigmoid,
  hard_sigmoid,
  softplus
};

// All kinds except `none`.
inline constexpr ActivationKind activation_kinds[] = {
    ActivationKind::relu,         ActivationKind::relu6,   ActivationKind::leaky_relu, ActivationKind::elu,
    ActivationKind::selu,         ActivationKind::gelu,    ActivationKind::gelu_tanh,  ActivationKind::silu,
    ActivationKind::mish,         ActivationKind::tanh,    ActivationKind::hard_swish, ActivationKind::sigmoid,
    ActivationKind::hard_sigmoid, ActivationKind::softplus};

std::string_view name_of(ActivationKind kind);

// Whether the gradient is computed from the output y; otherwise from the input x. Functions that are not monotonic need
// x, and so does hard_sigmoid, because bfloat16 rounds some of its outputs below 1 to 1.
constexpr bool gradient_uses_output(ActivationKind kind) {
  return kind != ActivationKind::gelu && kind != ActivationKind::gelu_tanh && kind != ActivationKind::silu &&
         kind != ActivationKind::mish && kind != ActivationKind::hard_swish && kind != ActivationKind::hard_sigmoid;
}

// Whether the op before the activation (dense, conv2d, add, ...) can also compute the function.
constexpr bool can_be_fused(ActivationKind kind) {
  return kind == ActivationKind::relu || kind == ActivationKind::leaky_relu || kind == ActivationKind::tanh ||
         kind == ActivationKind::sigmoid;
}

// Klambauer et al. (2017): with these constants selu keeps mean 0 and variance 1.
inline constexpr float selu_scale = 1.05070099f, selu_alpha = 1.67326324f;

// gelu_tanh is x * sigmoid(2 s (x + c x^3)), since (1 + tanh(z)) / 2 = sigmoid(2 z); here with s = sqrt(2 / pi).
inline constexpr float gelu_tanh_scale = 0.797884561f, gelu_tanh_cubic = 0.044715f;

struct ActivationFunction {
  ActivationKind kind = ActivationKind::none;
  float slope = 0.3f;  // leaky_relu: slope below zero; elu: alpha >= 0, y = alpha (e^x - 1) below zero

  bool operator==(const ActivationFunction&) const = default;
};

// Returns text such as "relu", "leaky_relu(0.3)" or "elu(1)".
std::string to_string(const ActivationFunction& function);

// y = f(x). Inputs: x. Outputs: y, like x. In place.
struct Activation final : OpDef {
  ActivationFunction function;

  explicit Activation(ActivationFunction f) : function(f) {}
  std::string_view kind() const override { return "activation"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
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
  OutputPlacements placements(const PlacementQuery& query) const override;
  std::vector<InPlace> in_place() const override { return {{0, 0}}; }
};

// y = f(a + b), equal shapes. Inputs: a, b. Outputs: y. In place on either. Also sums the gradients of a tensor that
// several ops read.
struct Add final : OpDef {
  ActivationFunction function;

  explicit Add(ActivationFunction f = {}) : function(f) {}
  std::string_view kind() const override { return "add"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  std::vector<InPlace> in_place() const override { return {{0, 0}, {1, 0}}; }
  std::optional<Op> fused_with(const Op& op, const Op& reader, std::size_t operand) const override;
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

}  // namespace trainctl
