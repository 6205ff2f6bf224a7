// Activation functions and their derivatives for the kernels of several ops.
#pragma once

#include <cstdint>

#include "core/backend/cpu/simd/math.h"
#include "core/graph/ops/elementwise/activations.h"
#include "core/tensor/dtype.h"

namespace trainctl::cpu {

// The factor of x in gelu_tanh.
TRAINCTL_INLINE inline float gelu_tanh_gate(float x) {
  return cpu::sigmoid(2 * gelu_tanh_scale * (x + gelu_tanh_cubic * x * x * x));
}

// The activation f(x).
template <ActivationKind kind>
TRAINCTL_INLINE inline float activate(float x, float slope) {
  using enum ActivationKind;
  if constexpr (kind == relu) return x < 0 ? 0.0f : x;
  if constexpr (kind == relu6) return x < 0 ? 0.0f : x > 6 ? 6.0f : x;
  if constexpr (kind == leaky_relu) return x < 0 ? x * slope : x;
  if constexpr (kind == elu) return x < 0 ? slope * expm1_approx(x) : x;
  if constexpr (kind == selu) return selu_scale * (x < 0 ? selu_alpha * expm1_approx(x) : x);
  if constexpr (kind == gelu) return 0.5f * x * (1.0f + erf_approx(x * 0.707106781f));
  if constexpr (kind == gelu_tanh) return x * gelu_tanh_gate(x);
  if constexpr (kind == silu) return x * cpu::sigmoid(x);
  if constexpr (kind == mish) return x * tanh_softplus(x);
  if constexpr (kind == hard_swish) return x * relu6_of(x + 3) * (1.0f / 6);
  if constexpr (kind == tanh) return tanh_approx(x);
  if constexpr (kind == ActivationKind::sigmoid) return cpu::sigmoid(x);
  if constexpr (kind == hard_sigmoid) return relu6_of(x + 3) * (1.0f / 6);
  if constexpr (kind == softplus) return softplus_approx(x);
  return x;
}

// The derivative f'(x); `saved` is f(x) or x (see gradient_uses_output).
template <ActivationKind kind>
TRAINCTL_INLINE inline float derivative(float saved, float slope) {
  using enum ActivationKind;
  if constexpr (kind == relu) return saved > 0 ? 1.0f : 0.0f;
  if constexpr (kind == relu6) return saved > 0 && saved < 6 ? 1.0f : 0.0f;
  if constexpr (kind == leaky_relu) return saved > 0 ? 1.0f : slope;
  if constexpr (kind == elu) return saved > 0 ? 1.0f : saved + slope;
  if constexpr (kind == selu) return saved > 0 ? selu_scale : saved + selu_scale * selu_alpha;
  if constexpr (kind == gelu) {
    return 0.5f * (1.0f + erf_approx(saved * 0.707106781f)) + saved * 0.398942280f * exp_approx(-0.5f * saved * saved);
  }
  if constexpr (kind == gelu_tanh) {
    const float s = gelu_tanh_gate(saved);
    return s * (1.0f + saved * (1.0f - s) * 2 * gelu_tanh_scale * (1.0f + 3 * gelu_tanh_cubic * saved * saved));
  }
  if constexpr (kind == silu) {
    const float s = cpu::sigmoid(saved);
    return s * (1.0f + saved * (1.0f - s));
  }
  if constexpr (kind == mish) {
    const float t = tanh_softplus(saved);
    return t + saved * (1.0f - t * t) * cpu::sigmoid(saved);
  }
  if constexpr (kind == hard_swish) return saved < -3 ? 0.0f : saved > 3 ? 1.0f : saved * (1.0f / 3) + 0.5f;
  if constexpr (kind == tanh) return 1.0f - saved * saved;
  if constexpr (kind == ActivationKind::sigmoid) return saved * (1.0f - saved);
  if constexpr (kind == hard_sigmoid) return saved > -3 && saved < 3 ? 1.0f / 6 : 0.0f;
  if constexpr (kind == softplus) return -expm1_approx(-saved);
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
    case relu6:
      return body(std::integral_constant<ActivationKind, relu6>{});
    case leaky_relu:
      return body(std::integral_constant<ActivationKind, leaky_relu>{});
    case elu:
      return body(std::integral_constant<ActivationKind, elu>{});
    case selu:
      return body(std::integral_constant<ActivationKind, selu>{});
    case gelu:
      return body(std::integral_constant<ActivationKind, gelu>{});
    case gelu_tanh:
      return body(std::integral_constant<ActivationKind, gelu_tanh>{});
    case silu:
      return body(std::integral_constant<ActivationKind, silu>{});
    case mish:
      return body(std::integral_constant<ActivationKind, mish>{});
    case hard_swish:
      return body(std::integral_constant<ActivationKind, hard_swish>{});
    case tanh:
      return body(std::integral_constant<ActivationKind, tanh>{});
    case ActivationKind::sigmoid:
      return body(std::integral_constant<ActivationKind, ActivationKind::sigmoid>{});
    case hard_sigmoid:
      return body(std::integral_constant<ActivationKind, hard_sigmoid>{});
    case softplus:
      return body(std::integral_constant<ActivationKind, softplus>{});
  }
}

// dx = dy * f'(saved) over `count` elements of a dtype; dx may be dy.
void activation_gradient(const ActivationFunction& function, DType dtype, const void* dy, const void* saved, void* dx,
                         std::int64_t count);

}  // namespace trainctl::cpu
