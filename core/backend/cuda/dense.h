// Dense layers as ways to compute them; 1x1 convolutions are dense layers too, over all pixels.
#pragma once

#include "core/backend/cuda/ways.h"
#include "core/graph/ops/activations.h"

namespace trainctl::cuda {

// x [rows, in], kernel [in, out], y [rows, out]; x and y in `dtype`, the kernel in a compute copy of that dtype where
// it is not float32.
struct DenseShape {
  std::int64_t rows = 0, in = 0, out = 0;
  DType dtype = DType::float32;
};

// Tensors as those of Dense, DenseGradInput (without its activation) and DenseGradWeights.
Way dense_forward(const LowerContext& context, const DenseShape& shape, bool bias, const ActivationFunction& function);
Way dense_input_gradient(const LowerContext& context, const DenseShape& shape, bool accumulate);
Way dense_weight_gradient(const LowerContext& context, const DenseShape& shape, bool bias, bool accumulate);

}  // namespace trainctl::cuda
