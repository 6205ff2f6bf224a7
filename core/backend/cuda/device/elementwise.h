// Activations of tensors in memory, for ops that end with an activation.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "core/graph/ops/elementwise/activations.h"
#include "core/tensor/dtype.h"

namespace trainctl::cuda {

// y = f(y), in place.
void activate(const ActivationFunction& function, DType dtype, void* y, std::int64_t count, cudaStream_t stream);

// y = f(y + bias) along the channels, in place; y is [rows, channels].
void bias_activate(const ActivationFunction& function, DType dtype, void* y, const float* bias, std::int64_t rows,
                   std::int64_t channels, cudaStream_t stream);

// dx = dy * f', with f' from the saved y or x (see gradient_uses_output). dx may be dy.
void activation_gradient(const ActivationFunction& function, DType dtype, const void* dy, const void* saved, void* dx,
                         std::int64_t count, cudaStream_t stream);

}  // namespace trainctl::cuda
