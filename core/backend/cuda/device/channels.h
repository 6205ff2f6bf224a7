// Grids over matrices [rows, channels] in which each thread always processes the same channels, and sums over the rows.
//
// A block processes `lanes` rows together, in a tile of neighbouring packs of channels that is at most a cache line
// wide. A stripe consists of all rows that a block processes. Sums over lanes are added in a fixed order.
#pragma once

#include <algorithm>
#include <bit>

#include "core/backend/cuda/device/pack.h"
#include "core/tensor/shape.h"

namespace trainctl::cuda {

inline constexpr int channel_threads = 512;  // threads of a block
inline constexpr int widest_tile = 32;       // packs in a tile

struct ChannelGrid {
  std::int64_t rows = 0, channels = 0;
  int width = 1;            // values in a pack
  int tile = 1, tiles = 1;  // packs in a tile, a power of two; tiles in a row
  // The number of groups of `lanes` rows, and of stripes; stripe s has the groups s, s + stripes, ...
  std::int64_t groups = 1, stripes = 1;
  // The smallest number of groups in a stripe; the first `longer_stripes` stripes have one more.
  std::int64_t least_groups = 1, longer_stripes = 0;
  std::int64_t last_stripe = 0;  // the stripe with the last group, which may be incomplete

  // `element` is the size of a value in bytes. The grid has at most `max_blocks` blocks, and each thread at least
  // `min_rows` rows if the matrix has enough.
  ChannelGrid(std::int64_t row_count, std::int64_t channel_count, int pack, std::int64_t element,
              std::int64_t max_blocks, std::int64_t min_rows)
      : rows(row_count), channels(channel_count), width(pack) {
    const std::int64_t packs = channels / width;
    tile = std::min(widest_tile, static_cast<int>(128 / (width * element)));
    while (tile > 4 && packs % tile != 0) tile /= 2;
    if (packs % tile != 0)
      tile = static_cast<int>(std::bit_ceil(static_cast<unsigned>(std::min<std::int64_t>(packs, 32))));
    tiles = static_cast<int>((packs + tile - 1) / tile);
    groups = (rows + lanes() - 1) / lanes();
    stripes = std::clamp<std::int64_t>(std::min(groups / min_rows, max_blocks / tiles), 1, 1 << 15);
    least_groups = groups / stripes;
    longer_stripes = groups % stripes;
    last_stripe = (groups - 1) % stripes;
  }
  __host__ __device__ int lanes() const { return channel_threads / tile; }
  // The number of channels in a tile, a power of two.
  __host__ __device__ int span() const { return tile * width; }
  // The number of rows in a stripe.
  __host__ __device__ std::int64_t rows_of(std::int64_t stripe) const {
    const std::int64_t own = least_groups + (stripe < longer_stripes ? 1 : 0);
    return own * lanes() - (stripe == last_stripe ? groups * lanes() - rows : 0);
  }
  dim3 blocks() const { return dim3(static_cast<unsigned>(tiles), static_cast<unsigned>(stripes)); }
};

// The work of a thread of a ChannelGrid: the rows first, first + step, ... below `rows`, and `width` channels from
// `channel` on.
struct ChannelThread {
  std::int64_t first, step, channel;
  bool inside;  // whether these channels exist

  __device__ explicit ChannelThread(const ChannelGrid& grid) {
    const int pack = static_cast<int>(threadIdx.x) % grid.tile, lane = static_cast<int>(threadIdx.x) / grid.tile;
    first = static_cast<std::int64_t>(blockIdx.y) * grid.lanes() + lane;
    step = grid.stripes * grid.lanes();
    channel = (static_cast<std::int64_t>(blockIdx.x) * grid.tile + pack) * grid.width;
    inside = channel < grid.channels;
  }
};

// Calls use(i, read(i)) for i = first, first + step, ... below `end`, issuing `batch` reads before it uses the first of
// them.
template <int batch, class Read, class Use>
__device__ void each(std::int64_t first, std::int64_t end, std::int64_t step, const Read& read, const Use& use) {
  std::int64_t i = first;
  for (; i + (batch - 1) * step < end; i += batch * step) {
    decltype(read(i)) values[batch];
#pragma unroll
    for (int b = 0; b < batch; ++b) values[b] = read(i + b * step);
#pragma unroll
    for (int b = 0; b < batch; ++b) use(i + b * step, values[b]);
  }
  for (; i < end; i += step) {
    auto value = read(i);
    use(i, value);
  }
}

// each() over a thread's rows; i is the offset of the thread's first channel in each row.
template <int batch, class Read, class Use>
__device__ void each_offset(const ChannelGrid& grid, const ChannelThread& at, const Read& read, const Use& use) {
  each<batch>(at.first * grid.channels + at.channel, grid.rows * grid.channels, at.step * grid.channels, read, use);
}

// Reads the values of a vector at a thread's channels.
template <int width>
__device__ inline void read_channels(const float* vector, std::int64_t channel, float (&values)[width]) {
  if constexpr (width % 4 == 0) {
    if (is_aligned(vector + channel)) {
#pragma unroll
      for (int k = 0; k < width; k += 4) {
        const Pack<float, 4> pack = pack_at<4>(vector + channel + k);
#pragma unroll
        for (int j = 0; j < 4; ++j) values[k + j] = pack.values[j];
      }
      return;
    }
  }
#pragma unroll
  for (int k = 0; k < width; ++k) values[k] = vector[channel + k];
}

// The channel of the sums that the thread holds after sum_lanes(); -1 if it holds no sums.
__device__ inline std::int64_t own_channel(const ChannelGrid& grid) {
  const std::int64_t channel = static_cast<std::int64_t>(blockIdx.x) * grid.span() + threadIdx.x;
  return threadIdx.x < static_cast<unsigned>(grid.span()) && channel < grid.channels ? channel : -1;
}

// These functions are for a block that adds up the results of all stripes of its tile. A thread adds the results of the
// stripes joined_first(), joined_first() + joined_step(), ... of the channel joined_channel(), which is -1 if the
// thread has no channel. sum_lanes() with the tile's span then returns the total of a channel to the thread whose
// own_channel() it is.
__device__ inline std::int64_t joined_channel(const ChannelGrid& grid) {
  const std::int64_t channel = static_cast<std::int64_t>(blockIdx.x) * grid.span() + threadIdx.x % grid.span();
  return channel < grid.channels ? channel : -1;
}
__device__ inline std::int64_t joined_first(const ChannelGrid& grid) { return threadIdx.x / grid.span(); }
__device__ inline std::int64_t joined_step(const ChannelGrid& grid) { return channel_threads / grid.span(); }

// Sums `quantities` times `width` values over the lanes of a block of channel_threads; `tile` is the number of packs in
// a tile. Thread t < tile * width gets the sums of value t % width of pack t / width. All threads of the block must
// call this function.
template <int quantities, int width, class T>
__device__ void sum_lanes(T (&values)[quantities][width], int tile, T (&sums)[quantities]) {
  constexpr int row = channel_threads + (width > 1 ? 4 : 0);  // avoids bank conflicts
  __shared__ T shared[quantities][width][row];
  __syncthreads();  // an earlier sum may still be read
#pragma unroll
  for (int q = 0; q < quantities; ++q) {
#pragma unroll
    for (int k = 0; k < width; ++k) {
      T value = values[q][k];
      for (int distance = 16; distance >= tile; distance /= 2) {
        value += __shfl_xor_sync(0xffffffffu, value, distance);
      }
      shared[q][k][threadIdx.x] = value;
    }
  }
  __syncthreads();
  const int pack = static_cast<int>(threadIdx.x) / width, k = static_cast<int>(threadIdx.x) % width;
  const int step = std::max(tile, 32);  // each warp has already added its values of a pack
#pragma unroll
  for (int q = 0; q < quantities; ++q) {
    sums[q] = 0;
    if (pack >= tile) continue;
    for (int i = pack; i < channel_threads; i += step) sums[q] += shared[q][k][i];
  }
}

// Images x [N, H, W, C] with their pixels as the rows of a ChannelGrid: block (x, y) processes tile x of the images y,
// y + gridDim.y, ...
struct ImageGrid {
  ChannelGrid grid;
  std::int64_t images;
  dim3 blocks;

  ImageGrid(const Shape& x, int width, std::int64_t element)
      : grid(x[1] * x[2], x[3], width, element, 1, 1),
        images(x[0]),
        blocks(static_cast<unsigned>(grid.tiles), static_cast<unsigned>(std::clamp<std::int64_t>(x[0], 1, 1 << 15))) {}
};

}  // namespace trainctl::cuda
