// Adds learned positions, and sums the gradient of their table.
#include "core/graph/ops/position_embedding.h"

#include "core/backend/cuda/device/column_sums.h"
#include "core/backend/cuda/device/pack.h"
#include "core/backend/cuda/kernels.h"

namespace trainctl::cuda {
namespace {

// The number of packs of x, of a sample, of a row, and of the table.
struct PositionPacks {
  std::uint32_t all, sample, row, table;
};

template <class T, int width>
__global__ void position_rows(PositionPacks packs, bool adds, const T* x, const float* table,
                              const std::int32_t* starts, T* y) {
  for (std::int64_t i = first_element(); i < packs.all; i += element_stride()) {
    const auto pack_number = static_cast<std::uint32_t>(i);
    std::uint32_t at = pack_number % packs.sample;
    if (starts != nullptr) {
      at += static_cast<std::uint32_t>(starts[pack_number / packs.sample]) * packs.row;
      if (at >= packs.table) at = packs.table - packs.row + at % packs.row;
    }
    const float* position = table + std::int64_t{at} * width;
    Pack<T, width> pack{};
    if (adds) pack = pack_at<width>(x + i * width);
#pragma unroll
    for (int k = 0; k < width; ++k) pack.values[k] = store<T>((adds ? load(pack.values[k]) : 0.0f) + position[k]);
    pack_at<width>(y + i * width) = pack;
  }
}

}  // namespace

Lowering lower_position_embedding(const LowerContext& context) {
  const Shape& x = context.input(0).shape;
  const bool adds = context.op.as<PositionEmbedding>().adds, has_starts = context.op.as<PositionEmbedding>().starts;
  return with_packs(context.input(0).dtype, x[2], [&](auto type, auto packed) {
    using T = decltype(type);
    constexpr int width = decltype(packed)::value;
    const PositionPacks packs{narrow(x.count() / width), narrow(x[1] * x[2] / width), narrow(x[2] / width),
                              narrow(context.input(1).shape.count() / width)};
    return own_kernel(context, [=](const Buffers& p) {
      launch(position_rows<T, width>, blocks_for(packs.all), block_threads, p.stream, packs, adds, p.in<T>(0),
             p.in<float>(1), has_starts ? p.in<std::int32_t>(2) : nullptr, p.out<T>(0));
    });
  });
}

// The samples are the rows of a matrix whose columns are the values of all positions.
Lowering lower_position_embedding_grad(const LowerContext& context) {
  const auto& def = context.op.as<PositionEmbeddingGrad>();
  const TensorType& dy = context.input(0);
  const std::int64_t columns = dy.shape[1] * dy.shape[2], rest = def.positions * dy.shape[2] - columns;
  const ColumnSums sums(dy.dtype, dy.shape[0], columns);
  return own_kernel(
      context,
      [=, accumulate = def.accumulate](const Buffers& p) {
        float* table = p.out<float>(0);
        sums.run(p.in<void>(0), accumulate, table, p.workspace<void>(), p.stream);
        if (accumulate || rest == 0) return;
        check(cudaMemsetAsync(table + columns, 0, static_cast<std::size_t>(rest) * sizeof(float), p.stream),
              "cudaMemsetAsync");
      },
      sums.workspace_bytes());
}

}  // namespace trainctl::cuda
