// Activations and their derivatives of one value, for kernels.
#pragma once

#include <cuda_runtime.h>

#include "core/graph/ops/activations.h"

namespace trainctl::cuda {

__device__ inline float sigmoid(float x) { return 1.0f / (1.0f + __expf(-x)); }
__device__ inline float normal_cdf(float x) { return 0.5f * (1.0f + erff(x * 0.70710678118654752f)); }

__device__ inline float value_of(ActivationKind kind, float slope, float x) {
  switch (kind) {
    case ActivationKind::relu:
      return x <= 0.0f ? 0.0f : x;  // NaN stays NaN
    case ActivationKind::leaky_relu:
      return x > 0 ? x : slope * x;
    case ActivationKind::gelu:
      return x * normal_cdf(x);
    case ActivationKind::silu:
      return x * sigmoid(x);
    case ActivationKind::tanh:
      return tanhf(x);
    case ActivationKind::sigmoid:
      return sigmoid(x);
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
    case ActivationKind::leaky_relu:
      return saved > 0 ? 1.0f : slope;
    case ActivationKind::gelu:
      return normal_cdf(saved) + saved * 0.39894228040143268f * __expf(-0.5f * saved * saved);
    case ActivationKind::silu: {
      const float s = sigmoid(saved);
      return s * (1.0f + saved * (1.0f - s));
    }
    case ActivationKind::tanh:
      return 1.0f - saved * saved;
    case ActivationKind::sigmoid:
      return saved * (1.0f - saved);
    case ActivationKind::none:
      break;
  }
  return 1.0f;
}

}  // namespace trainctl::cuda
