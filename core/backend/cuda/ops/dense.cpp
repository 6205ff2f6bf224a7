// Lowers dense layers, forward and backward, to cuBLASLt's products with bias, ReLU and bias-gradient epilogues.
#include "core/backend/cuda/ops/dense.h"

#include <algorithm>
#include <optional>

#include "core/backend/cuda/cublaslt/product.h"
#include "core/backend/cuda/device/column_sums.h"
#include "core/backend/cuda/device/elementwise.h"
#include "core/backend/cuda/kernels.h"
#include "core/graph/ops/dense.h"

namespace trainctl::cuda {
namespace {

// Requests the parameter at this input in the dtype in which the layer computes, which is a compute copy if that dtype
// is not float32.
void ask_for_copy(const LowerContext& context, std::size_t input, DType dtype, Candidate& candidate) {
  candidate.inputs[input] = {dtype, "", context.input(input).shape.count() * size_of(dtype)};
}

Candidate candidate_of(const LowerContext& context, const Product& product) {
  Candidate candidate;
  candidate.implementation = product.implementation();
  candidate.inputs = context.logical().inputs;
  candidate.workspace_bytes = product.workspace_bytes();
  return candidate;
}

}  // namespace

// Bias and ReLU are fused with the product if cuBLASLt offers that; else a kernel of this project runs after the
// product.
Candidate dense_forward(const LowerContext& context, const DenseShape& shape, bool bias,
                        const ActivationFunction& function) {
  const DType dtype = shape.dtype;
  const bool relu = function.kind == ActivationKind::relu;
  ProductShape product_shape{shape.rows, shape.out, shape.in, false, false, dtype, dtype};
  product_shape.epilogue = relu ? bias ? Epilogue::relu_bias : Epilogue::relu : bias ? Epilogue::bias : Epilogue::none;
  if (product_shape.epilogue != Epilogue::none && !is_offered(context.device, product_shape)) {
    product_shape.epilogue = Epilogue::none;
  }
  const bool fused = product_shape.epilogue != Epilogue::none, adds = bias && !fused;
  const bool activates = function.kind != ActivationKind::none && !(fused && relu);
  const Product product(context.device, product_shape, context.choices, context.label());
  Candidate candidate = candidate_of(context, product);
  ask_for_copy(context, 1, dtype, candidate);
  if (bias && fused) ask_for_copy(context, 2, dtype, candidate);
  candidate.run = [=](const Buffers& p) {
    void* y = p.out<void>(0);
    product.run(p.stream, p.in<void>(0), p.in<void>(1), y, bias && fused ? p.in<void>(2) : nullptr,
                p.workspace<void>());
    if (adds) {
      bias_activate(function, dtype, y, p.in<float>(2), shape.rows, shape.out, p.stream);
    } else if (activates) {
      activate(function, dtype, y, shape.rows * shape.out, p.stream);
    }
  };
  return candidate;
}

Candidate dense_input_gradient(const LowerContext& context, const DenseShape& shape, bool accumulate) {
  const Product product(context.device,
                        {shape.rows, shape.in, shape.out, false, true, shape.dtype, shape.dtype, accumulate},
                        context.choices, context.label());
  Candidate candidate = candidate_of(context, product);
  ask_for_copy(context, 1, shape.dtype, candidate);
  candidate.run = [=, bytes = context.output(0).bytes()](const Buffers& p) {
    if (accumulate) copy_unless_in_place(p, 2, bytes);
    product.run(p.stream, p.in<void>(0), p.in<void>(1), p.out<void>(0), nullptr, p.workspace<void>());
  };
  return candidate;
}

namespace {

ProductShape gradient_product(const DenseShape& shape, bool accumulate, bool with_bias) {
  ProductShape product{shape.in, shape.out, shape.rows, true, false, shape.dtype, DType::float32, accumulate};
  if (with_bias) product.epilogue = Epilogue::bias_gradient;
  return product;
}

bool offers_both(const LowerContext& context, const DenseShape& shape, bool bias, bool accumulate) {
  return bias && !accumulate && is_offered(context.device, gradient_product(shape, accumulate, true));
}

}  // namespace

void add_gradient_products(const LowerContext& context, const DenseShape& shape, bool bias, bool accumulate,
                           std::vector<std::string>& names) {
  if (offers_both(context, shape, bias, accumulate)) names.emplace_back(product_and_bias_name);
  names.emplace_back(product_name);
}

std::optional<Candidate> dense_weight_gradient(const LowerContext& context, const DenseShape& shape, bool bias,
                                               bool accumulate, const std::string& name) {
  const bool both = name == product_and_bias_name;
  if (both ? !offers_both(context, shape, bias, accumulate) : name != product_name) return {};
  const Product product(context.device, gradient_product(shape, accumulate, both), context.choices, context.label());
  Candidate candidate = candidate_of(context, product);
  std::optional<ColumnSums> sums;
  if (both) {
    candidate.implementation += " with the bias";
  } else if (bias) {
    sums.emplace(shape.dtype, shape.rows, shape.out);
    candidate.workspace_bytes = std::max(candidate.workspace_bytes, sums->workspace_bytes());
  }
  candidate.run = [=](const Buffers& p) {
    product.run(p.stream, p.in<void>(0), p.in<void>(1), p.out<void>(0), both ? p.out<void>(1) : nullptr,
                p.workspace<void>());
    if (sums) sums->run(p.in<void>(1), accumulate, p.out<float>(1), p.workspace<void>(), p.stream);
  };
  return candidate;
}

Lowering lower_dense(const LowerContext& context) {
  const Shape& x = context.input(0).shape;
  const Shape kernel = kernel_of_inputs(context.input(1).shape, x.back());
  const DenseShape shape{x.rows(), kernel[0], kernel[1], context.input(0).dtype};
  return lowering_of(context,
                     dense_forward(context, shape, context.op.inputs.size() > 2, context.op.as<Dense>().function));
}

Lowering lower_dense_grad_input(const LowerContext& context) {
  const auto& def = context.op.as<DenseGradInput>();
  const ActivationFunction function = def.function;
  const Shape& dy = context.input(0).shape;
  const Shape kernel = kernel_of_outputs(context.input(1).shape, dy.back());
  const DenseShape shape{dy.rows(), kernel[0], kernel[1], context.input(0).dtype};
  Candidate candidate = dense_input_gradient(context, shape, def.accumulate);
  if (function.kind != ActivationKind::none) {
    candidate.run = [product = candidate.run, function, shape](const Buffers& p) {
      product(p);
      void* dx = p.out<void>(0);
      activation_gradient(function, shape.dtype, dx, p.in<void>(2), dx, shape.rows * shape.in, p.stream);
    };
  }
  return lowering_of(context, candidate);
}

Lowering lower_dense_grad_weights(const LowerContext& context) {
  const auto& def = context.op.as<DenseGradWeights>();
  const Shape &x = context.input(0).shape, &dy = context.input(1).shape;
  const DenseShape shape{x.rows(), x.back(), dy.back(), context.input(0).dtype};
  const auto names = [&] {
    std::vector<std::string> names;
    add_gradient_products(context, shape, def.bias, def.accumulate, names);
    return names;
  };
  const auto make = [&](const std::string& name) {
    return dense_weight_gradient(context, shape, def.bias, def.accumulate, name);
  };
  return lower_fastest(context, {names, make, nullptr});
}

}  // namespace trainctl::cuda
