// Embeddings: the look-up of rows of a table, and the gradient of the table.
#include "core/graph/ops/embedding.h"

#include <limits>

#include "core/backend/cpu/kernels.h"

namespace trainctl::cpu {

Lowering lower_embedding(const LowerContext& context) {
  const std::int64_t count = context.input(0).shape.count();
  const std::int64_t rows = context.input(1).shape[0], channels = context.input(1).shape[1];
  const ColumnRange range = context.op.as<Embedding>().range.value_or(ColumnRange{0, rows});
  return with_type(context.output(0).dtype, [&](auto type) {
    using T = decltype(type);
    return own_kernel(context, [=](const Buffers& buffers) {
      const auto* numbers = buffers.in<std::int32_t>(0);
      const float* table = buffers.in<float>(1);
      T* to = buffers.out<T>(0);
      parallel_ranges(count, std::max<std::int64_t>(1, element_grain / channels),
                      [=](std::int64_t first, std::int64_t end) {
                        simd([=]() TRAINCTL_INLINE {
                          for (std::int64_t i = first; i < end; ++i) {
                            const std::int64_t row = numbers[i] - range.first;
                            const bool known = row >= 0 && row < rows;
                            const bool of_other_rank = !known && numbers[i] >= 0 && numbers[i] < range.of;
                            const float otherwise = of_other_rank ? 0.0f : std::numeric_limits<float>::quiet_NaN();
                            const float* from = table + (known ? row : 0) * channels;
                            T* y = to + i * channels;
#pragma omp simd
                            for (std::int64_t c = 0; c < channels; ++c) {
                              y[c] = store<T>(known ? from[c] : otherwise);
                            }
                          }
                        });
                      });
    });
  });
}

// Each thread computes a range of channels, so that every sum is added in the order of the row numbers in the input.
Lowering lower_embedding_grad(const LowerContext& context) {
  const auto& def = context.op.as<EmbeddingGrad>();
  const std::int64_t count = context.input(0).shape.count(), channels = context.input(1).shape.back();
  const std::int64_t first_row = def.range ? def.range->first : 0;
  return with_type(context.input(1).dtype, [&, rows = def.rows, accumulate = def.accumulate](auto type) {
    using T = decltype(type);
    return own_kernel(context, [=](const Buffers& buffers) {
      const auto* numbers = buffers.in<std::int32_t>(0);
      const T* gradients = buffers.in<T>(1);
      float* table = buffers.out<float>(0);
      if (!accumulate) {
        parallel_ranges(rows * channels, element_grain,
                        [=](std::int64_t first, std::int64_t end) { std::fill(table + first, table + end, 0.0f); });
      }
      constexpr std::int64_t cache_line = 16;
      const std::int64_t grain =
          std::max(cache_line, round_up(element_grain / std::max<std::int64_t>(count, 1), cache_line));
      parallel_ranges(channels, grain, [=](std::int64_t first, std::int64_t end) {
        simd([=]() TRAINCTL_INLINE {
          for (std::int64_t i = 0; i < count; ++i) {
            const std::int64_t row = numbers[i] - first_row;
            if (row < 0 || row >= rows) continue;
            const T* dy = gradients + i * channels;
            float* sums = table + row * channels;
#pragma omp simd
            for (std::int64_t c = first; c < end; ++c) sums[c] += load(dy[c]);
          }
        });
      });
    });
  });
}

}  // namespace trainctl::cpu
