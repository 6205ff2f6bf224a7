// Biases that are added after a sum over ranks, and their gradients.
#include "core/graph/ops/elementwise/bias.h"

#include "core/backend/cpu/kernels.h"
#include "core/backend/cpu/simd/column_sums.h"
#include "core/backend/cpu/simd/elementwise.h"
#include "core/backend/cpu/simd/narrowing.h"

namespace trainctl::cpu {
namespace {

// y = f(x + bias) for rows [begin, end).
template <ActivationKind kind, class T>
void add_bias(const T* x, const float* bias, std::int64_t begin, std::int64_t end, std::int64_t channels, float slope,
              T* y) {
  simd([=]() TRAINCTL_INLINE {
    for (std::int64_t row = begin; row < end; ++row) {
      const T* const from = x + row * channels;
      T* const to = y + row * channels;
      store_each(to, 0, channels,
                 [=](std::int64_t c) TRAINCTL_INLINE { return activate<kind>(load(from[c]) + bias[c], slope); });
    }
  });
}

}  // namespace

Lowering lower_add_bias(const LowerContext& context) {
  const ActivationFunction function = context.op.as<AddBias>().function;
  const std::int64_t rows = context.input(0).shape.rows(), channels = context.input(0).shape.back();
  return with_type(context.input(0).dtype, [&](auto type) {
    using T = decltype(type);
    return own_kernel(context, [=](const Buffers& buffers) {
      const T* x = buffers.in<T>(0);
      const float* bias = buffers.in<float>(1);
      T* y = buffers.out<T>(0);
      with_kind(function.kind, [=, slope = function.slope](auto kind) {
        parallel_ranges(rows, std::max<std::int64_t>(1, element_grain / channels),
                        [=](std::int64_t begin, std::int64_t end) {
                          add_bias<decltype(kind)::value>(x, bias, begin, end, channels, slope, y);
                        });
      });
    });
  });
}

Lowering lower_bias_grad(const LowerContext& context) {
  const bool accumulate = context.op.as<BiasGrad>().accumulate;
  const TensorType& dy = context.input(0);
  const std::int64_t rows = dy.shape.rows(), channels = dy.shape.back();
  return own_kernel(
      context,
      [=, dtype = dy.dtype](const Buffers& buffers) {
        column_sums(dtype, buffers.in<void>(0), rows, channels, accumulate, buffers.out<float>(0),
                    buffers.workspace<void>());
      },
      column_sums_workspace(rows, channels));
}

}  // namespace trainctl::cpu
