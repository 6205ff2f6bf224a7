// Computes sums of columns: blocks sum stripes of rows, and the last block of each tile adds the stripes in order.
#include "core/backend/cuda/device/column_sums.h"

#include "core/backend/cuda/device/channels.h"
#include "core/backend/cuda/device/last_block.h"
#include "core/backend/cuda/device/own_memory.h"

namespace trainctl::cuda {
namespace {

ChannelGrid grid_of(std::int64_t rows, std::int64_t columns, std::int64_t element, int width) {
  return {rows, columns, width, element, 256, 8};
}

// `partial` [stripe][column] is used if there are several stripes.
template <class T, int width>
__global__ void __launch_bounds__(channel_threads, 2)
    sum_columns(ChannelGrid grid, const T* x, bool accumulate, float* partial, unsigned* counters, float* result) {
  const ChannelThread at(grid);
  float values[1][width] = {};
  if (at.inside) {
    const auto read = [&](std::int64_t row) { return pack_at<width>(x + row * grid.channels + at.channel); };
    each<4>(at.first, grid.rows, at.step, read, [&](std::int64_t, const Pack<T, width>& pack) {
#pragma unroll
      for (int k = 0; k < width; ++k) values[0][k] += load(pack.values[k]);
    });
  }
  float sums[1];
  sum_lanes(values, grid.tile, sums);
  const std::int64_t column = own_channel(grid);
  if (grid.stripes > 1) {
    if (column >= 0) partial[blockIdx.y * grid.channels + column] = sums[0];
    if (!last_block(counters + blockIdx.x, gridDim.y)) return;
    float joined[1][1] = {};
    if (const std::int64_t own = joined_channel(grid); own >= 0) {
      const auto read = [&](std::int64_t stripe) { return fresh(partial + stripe * grid.channels + own); };
      each<8>(joined_first(grid), grid.stripes, joined_step(grid), read,
              [&](std::int64_t, float value) { joined[0][0] += value; });
    }
    sum_lanes(joined, grid.span(), sums);
  }
  if (column >= 0) result[column] = accumulate ? result[column] + sums[0] : sums[0];
}

}  // namespace

ColumnSums::ColumnSums(DType dtype, std::int64_t rows, std::int64_t columns)
    : dtype_(dtype), rows_(rows), columns_(columns) {
  with_packs(dtype, columns, [&](auto type, auto width) {
    const ChannelGrid grid = grid_of(rows, columns, sizeof(type), width);
    if (grid.stripes == 1) return;
    workspace_bytes_ = grid.stripes * columns * size_of(DType::float32);
    counters_ = make_counters(grid.tiles);
  });
}

void ColumnSums::run(const void* x, bool accumulate, float* sums, void* workspace, cudaStream_t stream) const {
  with_packs(dtype_, columns_, [&](auto type, auto pack) {
    using T = decltype(type);
    constexpr int width = decltype(pack)::value;
    const ChannelGrid grid = grid_of(rows_, columns_, sizeof(T), width);
    launch(sum_columns<T, width>, grid.blocks(), channel_threads, stream, grid, static_cast<const T*>(x), accumulate,
           static_cast<float*>(workspace), counters_.get(), sums);
  });
}

}  // namespace trainctl::cuda
