// Sums of columns: blocks sum stripes of rows, then one pass adds the stripes in order.
#include "core/backend/cuda/channels.h"
#include "core/backend/cuda/elementwise.h"

namespace trainctl::cuda {
namespace {

ChannelGrid grid_of(std::int64_t rows, std::int64_t columns, std::int64_t element, int width) {
  return {rows, columns, width, element, 256, 8};
}

// partial[stripe][column].
template <class T, int width>
__global__ void __launch_bounds__(channel_threads, 2) sum_stripes(ChannelGrid grid, const T* x, float* partial) {
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
  if (column >= 0) partial[blockIdx.y * grid.channels + column] = sums[0];
}

constexpr int columns_at_once = 32, stripes_at_once = block_threads / columns_at_once;

// Block x: 32 columns from 32 x.
__global__ void add_stripes(const float* partial, std::int64_t stripes, std::int64_t columns, bool accumulate,
                            float* sums) {
  __shared__ float shared[stripes_at_once][columns_at_once];
  const int lane = threadIdx.x / columns_at_once, place = threadIdx.x % columns_at_once;
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * columns_at_once + place;
  float sum = 0;
  if (column < columns) {
    const auto read = [&](std::int64_t stripe) { return partial[stripe * columns + column]; };
    each<8>(lane, stripes, stripes_at_once, read, [&](std::int64_t, float value) { sum += value; });
  }
  shared[lane][place] = sum;
  __syncthreads();
  if (lane != 0 || column >= columns) return;
  for (int i = 1; i < stripes_at_once; ++i) sum += shared[i][place];
  sums[column] = accumulate ? sums[column] + sum : sum;
}

}  // namespace

std::int64_t column_sums_workspace(std::int64_t rows, std::int64_t columns) {
  std::int64_t stripes = 0;
  for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
    with_packs(dtype, columns, [&](auto type, auto width) {
      stripes = std::max(stripes, grid_of(rows, columns, sizeof(type), width).stripes);
    });
  }
  return stripes * columns * size_of(DType::float32);
}

void column_sums(DType dtype, const void* x, std::int64_t rows, std::int64_t columns, bool accumulate, float* sums,
                 void* workspace, cudaStream_t stream) {
  auto* partial = static_cast<float*>(workspace);
  with_packs(dtype, columns, [&](auto type, auto pack) {
    using T = decltype(type);
    constexpr int width = decltype(pack)::value;
    const ChannelGrid grid = grid_of(rows, columns, sizeof(T), width);
    launch(sum_stripes<T, width>, grid.blocks(), channel_threads, stream, grid, static_cast<const T*>(x), partial);
    launch(add_stripes, blocks_for(columns * stripes_at_once), block_threads, stream, partial, grid.stripes, columns,
           accumulate, sums);
  });
}

}  // namespace trainctl::cuda
