// Device functions for the activation of one value, and for its derivative.
#pragma once

#include <cuda_runtime.h>

#include "core/graph/ops/elementwise/activations.h"

namespace trainctl::cuda {

__device__ inline float sigmoid(float x) { return 1.0f / (1.0f + __expf(-x)); }
__device__ inline float normal_cdf(float x) { return 0.5f * (1.0f + erff(x * 0.70710678118654752f)); }

// The factor of x in gelu_tanh.
__device__ inline float gelu_tanh_gate(float x) {
  return sigmoid(2 * gelu_tanh_scale * (x + gelu_tanh_cubic * x * x * x));
}

__device__ inline float relu6_of(float x) { return x <= 0.0f ? 0.0f : x > 6.0f ? 6.0f : x; }  // NaN stays NaN
// tanh(log(1 + e^x)) = n / (n + 2) with n = e^x (e^x + 2); 1 from x = 20 on.
__device__ inline float tanh_softplus(float x) {
  const float e = __expf(x > 20.0f ? 20.0f : x);
  const float n = e * (e + 2.0f);
  return n / (n + 2.0f);
}

__device__ inline float value_of(ActivationKind kind, float slope, float x) {
  switch (kind) {
    case ActivationKind::relu:
      return x <= 0.0f ? 0.0f : x;  // NaN stays NaN
    case ActivationKind::relu6:
      return relu6_of(x);
    case ActivationKind::leaky_relu:
      return x > 0 ? x : slope * x;
    case ActivationKind::elu:
      return x > 0 ? x : slope * expm1f(x);
    case ActivationKind::selu:
      return selu_scale * (x > 0 ? x : selu_alpha * expm1f(x));
    case ActivationKind::gelu:
      return x * normal_cdf(x);
    case ActivationKind::gelu_tanh:
      return x * gelu_tanh_gate(x);
    case ActivationKind::silu:
      return x * sigmoid(x);
    case ActivationKind::mish:
      return x * tanh_softplus(x);
    case ActivationKind::hard_swish:
      return x * relu6_of(x + 3.0f) * (1.0f / 6);
    case ActivationKind::tanh:
      return tanhf(x);
    case ActivationKind::sigmoid:
      return sigmoid(x);
    case ActivationKind::hard_sigmoid:
      return relu6_of(x + 3.0f) * (1.0f / 6);
    case ActivationKind::softplus:
      return (x > 0 ? x : 0.0f) + log1pf(__expf(-fabsf(x)));
    case ActivationKind::none:
      break;
  }
  return x;
}

// f', computed from the output or the input (see gradient_uses_output).
__device__ inline float derivative_of(ActivationKind kind, float slope, float saved) {
  switch (kind) {
    case ActivationKind::relu:
      return saved > 0 ? 1.0f : 0.0f;
    case ActivationKind::relu6:
      return saved > 0 && saved < 6 ? 1.0f : 0.0f;
    case ActivationKind::leaky_relu:
      return saved > 0 ? 1.0f : slope;
    case ActivationKind::elu:
      return saved > 0 ? 1.0f : saved + slope;
    case ActivationKind::selu:
      return saved > 0 ? selu_scale : saved + selu_scale * selu_alpha;
    case ActivationKind::gelu:
      return normal_cdf(saved) + saved * 0.39894228040143268f * __expf(-0.5f * saved * saved);
    case ActivationKind::gelu_tanh: {
      const float s = gelu_tanh_gate(saved);
      return s * (1.0f + saved * (1.0f - s) * 2 * gelu_tanh_scale * (1.0f + 3 * gelu_tanh_cubic * saved * saved));
    }
    case ActivationKind::silu: {
      const float s = sigmoid(saved);
      return s * (1.0f + saved * (1.0f - s));
    }
    case ActivationKind::mish: {
      const float t = tanh_softplus(saved);
      return t + saved * (1.0f - t * t) * sigmoid(saved);
    }
    case ActivationKind::hard_swish:
      return saved < -3 ? 0.0f : saved > 3 ? 1.0f : saved * (1.0f / 3) + 0.5f;
    case ActivationKind::tanh:
      return 1.0f - saved * saved;
    case ActivationKind::sigmoid:
      return saved * (1.0f - saved);
    case ActivationKind::hard_sigmoid:
      return saved > -3 && saved < 3 ? 1.0f / 6 : 0.0f;
    case ActivationKind::softplus:
      return -expm1f(-saved);
    case ActivationKind::none:
      break;
  }
  return 1.0f;
}

}  // namespace trainctl::cuda
