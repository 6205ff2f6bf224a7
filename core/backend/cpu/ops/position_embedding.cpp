// Learned positions, and the gradient of their table.
#include "core/graph/ops/position_embedding.h"

#include "core/backend/cpu/kernels.h"
#include "core/backend/cpu/simd/column_sums.h"

namespace trainctl::cpu {

Lowering lower_position_embedding(const LowerContext& context) {
  const Shape& x = context.input(0).shape;
  const std::int64_t count = x[0] * x[1], steps = x[1], channels = x[2], last = context.input(1).shape[0] - 1;
  const auto& def = context.op.as<PositionEmbedding>();
  return with_type(context.input(0).dtype, [&, adds = def.adds, has_starts = def.starts](auto type) {
    using T = decltype(type);
    return own_kernel(context, [=](const Buffers& buffers) {
      const T* from = buffers.in<T>(0);
      const float* table = buffers.in<float>(1);
      const auto* starts = has_starts ? buffers.in<std::int32_t>(2) : nullptr;
      T* to = buffers.out<T>(0);
      parallel_ranges(count, std::max<std::int64_t>(1, element_grain / channels),
                      [=](std::int64_t begin, std::int64_t end) {
                        simd([=]() TRAINCTL_INLINE {
                          for (std::int64_t row = begin; row < end; ++row) {
                            const T* x_row = from + row * channels;
                            const std::int64_t start = starts != nullptr ? starts[row / steps] : 0;
                            const float* position = table + std::min(start + row % steps, last) * channels;
                            T* y = to + row * channels;
                            if (adds) {
#pragma omp simd
                              for (std::int64_t c = 0; c < channels; ++c) y[c] = store<T>(load(x_row[c]) + position[c]);
                            } else {
#pragma omp simd
                              for (std::int64_t c = 0; c < channels; ++c) y[c] = store<T>(position[c]);
                            }
                          }
                        });
                      });
    });
  });
}

// The samples are the rows of a matrix whose columns are the values of all positions.
Lowering lower_position_embedding_grad(const LowerContext& context) {
  const auto& def = context.op.as<PositionEmbeddingGrad>();
  const TensorType& dy = context.input(0);
  const std::int64_t samples = dy.shape[0], columns = dy.shape[1] * dy.shape[2];
  const std::int64_t total = def.positions * dy.shape[2];
  return own_kernel(
      context,
      [=, accumulate = def.accumulate, dtype = dy.dtype](const Buffers& buffers) {
        float* table = buffers.out<float>(0);
        column_sums(dtype, buffers.in<void>(0), samples, columns, accumulate, table, buffers.workspace<void>());
        if (!accumulate) std::fill(table + columns, table + total, 0.0f);
      },
      column_sums_workspace(samples, columns));
}

}  // namespace trainctl::cpu
