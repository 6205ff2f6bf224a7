// Activations and their gradients, and sums, element by element.
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

// y = f(a + b), equal shapes. Inputs: a, b. Outputs: y. In place on either. Also sums gradients of a tensor used twice.
struct Add final : OpDef {
  ActivationFunction function;

  explicit Add(ActivationFunction f = {}) : function(f) {}
  std::string_view kind() const override { return "add"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  std::vector<InPlace> in_place() const override { return {{0, 0}, {1, 0}}; }
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

}  // namespace trainctl
