// Dense layers, forward and backward, on cuBLASLt's products with bias, ReLU and bias-gradient epilogues.
#include <algorithm>

#include "core/backend/cuda/elementwise.h"
#include "core/backend/cuda/kernels.h"
#include "core/backend/cuda/product.h"
#include "core/graph/ops/linear.h"

namespace trainctl::cuda {
namespace {

// The kernel lies in the dtype that the layer computes in: a compute copy where that is not float32.
void ask_for_kernel(const LowerContext& context, DType dtype, Lowering& lowering) {
  lowering.inputs[1] = {dtype, "", context.input(1).shape.count() * size_of(dtype)};
}

}  // namespace

Lowering lower_dense(const LowerContext& context) {
  const ActivationFunction function = context.op.as<Dense>().function;
  const DType dtype = context.input(0).dtype;
  const Shape &x = context.input(0).shape, &kernel_shape = context.input(1).shape;
  const bool bias = context.op.inputs.size() > 2, relu = function.kind == ActivationKind::relu;
  ProductShape shape{x[0], kernel_shape[1], kernel_shape[0], false, false, dtype, dtype};
  shape.epilogue = relu ? bias ? Epilogue::relu_bias : Epilogue::relu : bias ? Epilogue::bias : Epilogue::none;
  const Product product(context.device, shape, context.choices);
  const std::int64_t count = context.output(0).shape.count();
  const bool activates = !relu && function.kind != ActivationKind::none;
  Lowering lowering = kernel(
      context, product.implementation(),
      [=](const Places& p) {
        product.run(p.stream, p.in<void>(0), p.in<void>(1), p.out<void>(0), bias ? p.in<void>(2) : nullptr,
                    p.workspace<void>());
        if (activates) activate(function, dtype, p.out<void>(0), count, p.stream);
      },
      product.workspace_bytes());
  ask_for_kernel(context, dtype, lowering);
  return lowering;
}

Lowering lower_dense_grad_input(const LowerContext& context) {
  const ActivationFunction function = context.op.as<DenseGradInput>().function;
  const DType dtype = context.input(0).dtype;
  const Shape &dy = context.input(0).shape, &kernel_shape = context.input(1).shape;
  const Product product(context.device, {dy[0], kernel_shape[0], kernel_shape[1], false, true, dtype, dtype},
                        context.choices);
  const std::int64_t count = context.output(0).shape.count();
  Lowering lowering = kernel(
      context, product.implementation(),
      [=](const Places& p) {
        void* dx = p.out<void>(0);
        product.run(p.stream, p.in<void>(0), p.in<void>(1), dx, nullptr, p.workspace<void>());
        if (function.kind == ActivationKind::none) return;
        activation_gradient(function, dtype, dx, p.in<void>(2), dx, count, p.stream);
      },
      product.workspace_bytes());
  ask_for_kernel(context, dtype, lowering);
  return lowering;
}

// The bias gradient comes with the product where cuBLASLt offers that and nothing is added to; else from its own pass.
Lowering lower_dense_grad_weights(const LowerContext& context) {
  const auto& def = context.op.as<DenseGradWeights>();
  const DType dtype = context.input(0).dtype;
  const std::int64_t samples = context.input(0).shape[0], in = context.input(0).shape[1];
  const std::int64_t out = context.input(1).shape[1];
  ProductShape shape{in, out, samples, true, false, dtype, DType::float32, def.accumulate};
  shape.epilogue = def.bias && !def.accumulate ? Epilogue::bias_gradient : Epilogue::none;
  if (shape.epilogue != Epilogue::none && !is_offered(context.device, shape)) shape.epilogue = Epilogue::none;
  const Product product(context.device, shape, context.choices);
  const bool fused = shape.epilogue != Epilogue::none, sums = def.bias && !fused, accumulate = def.accumulate;
  const std::int64_t scratch = sums ? column_sums_workspace(samples, out) : 0;
  return kernel(
      context, product.implementation(),
      [=](const Places& p) {
        product.run(p.stream, p.in<void>(0), p.in<void>(1), p.out<void>(0), fused ? p.out<void>(1) : nullptr,
                    p.workspace<void>());
        if (sums)
          column_sums(dtype, p.in<void>(1), samples, out, accumulate, p.out<float>(1), p.workspace<void>(), p.stream);
      },
      std::max(product.workspace_bytes(), scratch));
}

}  // namespace trainctl::cuda
