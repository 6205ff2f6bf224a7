// The device functions that the rules of losses and metrics call (core/graph/ops/losses/rule.h).
#pragma once

#include <cuda_runtime.h>

namespace trainctl::cuda {

struct Math {
  __device__ static float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }
  __device__ static float softplus(float x) { return log1pf(expf(x)); }
  __device__ static float tanh(float x) { return tanhf(x); }
  __device__ static float log(float x) { return logf(x); }
  __device__ static float power(float x, float exponent) { return powf(x, exponent); }
};

}  // namespace trainctl::cuda
