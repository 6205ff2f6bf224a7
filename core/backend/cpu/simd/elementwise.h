// Activation functions as the kernels of several ops use them.
#pragma once

#include <cstdint>

#include "core/backend/cpu/simd/math.h"
#include "core/graph/ops/activations.h"
#include "core/tensor/dtype.h"

namespace trainctl::cpu {

// f(x); and below f', computed from y or x (see gradient_uses_output).
template <ActivationKind kind>
TRAINCTL_INLINE inline float activate(float x, float slope) {
  if constexpr (kind == ActivationKind::relu) return x < 0 ? 0.0f : x;
  if constexpr (kind == ActivationKind::leaky_relu) return x < 0 ? x * slope : x;
  if constexpr (kind == ActivationKind::gelu) return 0.5f * x * (1.0f + erf_approx(x * 0.707106781f));
  if constexpr (kind == ActivationKind::silu) return x * sigmoid(x);
  if constexpr (kind == ActivationKind::tanh) return tanh_approx(x);
  if constexpr (kind == ActivationKind::sigmoid) return sigmoid(x);
  return x;
}
template <ActivationKind kind>
TRAINCTL_INLINE inline float derivative(float saved, float slope) {
  if constexpr (kind == ActivationKind::relu) return saved > 0 ? 1.0f : 0.0f;
  if constexpr (kind == ActivationKind::leaky_relu) return saved > 0 ? 1.0f : slope;
  if constexpr (kind == ActivationKind::gelu) {
    return 0.5f * (1.0f + erf_approx(saved * 0.707106781f)) + saved * 0.398942280f * exp_approx(-0.5f * saved * saved);
  }
  if constexpr (kind == ActivationKind::silu) {
    const float s = sigmoid(saved);
    return s * (1.0f + saved * (1.0f - s));
  }
  if constexpr (kind == ActivationKind::tanh) return 1.0f - saved * saved;
  if constexpr (kind == ActivationKind::sigmoid) return saved * (1.0f - saved);
  return 1.0f;
}

// Calls body with the kind as a compile-time constant.
template <class Body>
void with_kind(ActivationKind kind, const Body& body) {
  using enum ActivationKind;
  switch (kind) {
    case none:
      return body(std::integral_constant<ActivationKind, none>{});
    case relu:
      return body(std::integral_constant<ActivationKind, relu>{});
    case leaky_relu:
      return body(std::integral_constant<ActivationKind, leaky_relu>{});
    case gelu:
      return body(std::integral_constant<ActivationKind, gelu>{});
    case silu:
      return body(std::integral_constant<ActivationKind, silu>{});
    case tanh:
      return body(std::integral_constant<ActivationKind, tanh>{});
    case ActivationKind::sigmoid:
      return body(std::integral_constant<ActivationKind, ActivationKind::sigmoid>{});
  }
}

// dx = dy * f'(saved) over `count` elements of a dtype; dx may be dy.
void activation_gradient(const ActivationFunction& function, DType dtype, const void* dy, const void* saved, void* dx,
                         std::int64_t count);

}  // namespace trainctl::cpu
