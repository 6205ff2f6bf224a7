// Adds biases to sums over ranks, and computes the biases' gradients.
#include "core/graph/ops/elementwise/bias.h"

#include "core/backend/cuda/device/column_sums.h"
#include "core/backend/cuda/device/elementwise.h"
#include "core/backend/cuda/kernels.h"

namespace trainctl::cuda {

Lowering lower_add_bias(const LowerContext& context) {
  const ActivationFunction function = context.op.as<AddBias>().function;
  const TensorType& x = context.input(0);
  return own_kernel(context, [=, dtype = x.dtype, rows = x.shape.rows(), channels = x.shape.back()](const Buffers& p) {
    copy_unless_in_place(p, 0, rows * channels * size_of(dtype));
    bias_activate(function, dtype, p.out<void>(0), p.in<float>(1), rows, channels, p.stream);
  });
}

Lowering lower_bias_grad(const LowerContext& context) {
  const bool accumulate = context.op.as<BiasGrad>().accumulate;
  const TensorType& dy = context.input(0);
  const ColumnSums sums(dy.dtype, dy.shape.rows(), dy.shape.back());
  return own_kernel(
      context,
      [=](const Buffers& p) { sums.run(p.in<void>(0), accumulate, p.out<float>(0), p.workspace<void>(), p.stream); },
      sums.workspace_bytes());
}

}  // namespace trainctl::cuda
