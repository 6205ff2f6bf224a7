// Embeddings: looks up rows of a table, and sums the gradient of the table in the order of the row numbers.
#include "core/graph/ops/embedding.h"

#include "core/backend/cuda/device/grid.h"
#include "core/backend/cuda/kernels.h"

namespace trainctl::cuda {
namespace {

template <class T>
__global__ void look_up(std::int64_t count, std::int64_t channels, std::int64_t rows, const std::int32_t* numbers,
                        const float* table, T* y) {
  for (std::int64_t i = first_element(); i < count * channels; i += element_stride()) {
    const std::int32_t row = numbers[i / channels];
    y[i] = store<T>(row >= 0 && row < rows ? table[row * channels + i % channels] : NAN);
  }
}

// Each warp sums the gradient of one row of the table: it searches all numbers for the row's number.
template <class T>
__global__ void sum_rows(std::int64_t count, std::int64_t channels, std::int64_t rows, bool accumulate,
                         const std::int32_t* numbers, const T* dy, float* table) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (std::int64_t row = first_element() / 32; row < rows; row += element_stride() / 32) {
    float* sums = table + row * channels;
    if (!accumulate) {
      for (std::int64_t c = lane; c < channels; c += 32) sums[c] = 0;
    }
    for (std::int64_t first = 0; first < count; first += 32) {
      const bool is_own = first + lane < count && numbers[first + lane] == row;
      for (unsigned own = __ballot_sync(0xffffffffu, is_own); own != 0; own &= own - 1) {
        const T* gradient = dy + (first + __ffs(static_cast<int>(own)) - 1) * channels;
        for (std::int64_t c = lane; c < channels; c += 32) sums[c] += load(gradient[c]);
      }
    }
  }
}

}  // namespace

Lowering lower_embedding(const LowerContext& context) {
  const std::int64_t count = context.input(0).shape.count();
  const std::int64_t rows = context.input(1).shape[0], channels = context.input(1).shape[1];
  return with_type(context.output(0).dtype, [&](auto type) {
    using T = decltype(type);
    return own_kernel(context, [=, blocks = blocks_for(count * channels)](const Buffers& p) {
      launch(look_up<T>, blocks, block_threads, p.stream, count, channels, rows, p.in<std::int32_t>(0), p.in<float>(1),
             p.out<T>(0));
    });
  });
}

Lowering lower_embedding_grad(const LowerContext& context) {
  const auto& def = context.op.as<EmbeddingGrad>();
  const std::int64_t count = context.input(0).shape.count(), channels = context.input(1).shape.back();
  return with_type(context.input(1).dtype, [&, rows = def.rows, accumulate = def.accumulate](auto type) {
    using T = decltype(type);
    return own_kernel(context, [=, blocks = blocks_for(rows * 32)](const Buffers& p) {
      launch(sum_rows<T>, blocks, block_threads, p.stream, count, channels, rows, accumulate, p.in<std::int32_t>(0),
             p.in<T>(1), p.out<float>(0));
    });
  });
}

}  // namespace trainctl::cuda
