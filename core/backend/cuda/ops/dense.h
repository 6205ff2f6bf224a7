// Candidates for dense layers; 1x1 convolutions are dense layers too, over all pixels.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/backend/cuda/choice/candidates.h"
#include "core/graph/ops/elementwise/activations.h"

namespace trainctl::cuda {

// x [rows, in], kernel [in, out], y [rows, out]; x and y in `dtype`, the kernel in a compute copy of that dtype if it
// is not float32.
struct DenseShape {
  std::int64_t rows = 0, in = 0, out = 0;
  DType dtype = DType::float32;
};

// Candidates for Dense and for DenseGradInput without an activation, with these ops' tensors.
Candidate dense_forward(const LowerContext& context, const DenseShape& shape, bool bias,
                        const ActivationFunction& function);
Candidate dense_input_gradient(const LowerContext& context, const DenseShape& shape, bool accumulate);
// The gradient of the weights has two candidates if there is a bias: a product and separate sums for the bias, or one
// product that computes both, if cuBLASLt offers that and the op does not accumulate.
constexpr const char *product_name = "product", *product_and_bias_name = "product and bias";
void add_gradient_products(const LowerContext& context, const DenseShape& shape, bool bias, bool accumulate,
                           std::vector<std::string>& names);
// Empty if the name is neither of these, or cuBLASLt does not offer that product.
std::optional<Candidate> dense_weight_gradient(const LowerContext& context, const DenseShape& shape, bool bias,
                                               bool accumulate, const std::string& name);

}  // namespace trainctl::cuda
