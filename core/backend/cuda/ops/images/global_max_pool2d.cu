// Computes the largest value of each channel of an image, and its gradient.
#include "core/graph/ops/images/global_max_pool2d.h"

#include <cmath>
#include <limits>

#include "core/backend/cuda/device/channels.h"
#include "core/backend/cuda/kernels.h"

namespace trainctl::cuda {
namespace {

// A value and the index of its pixel.
struct Winner {
  float value = -INFINITY;
  std::int32_t pixel = std::numeric_limits<std::int32_t>::max();

  // Whether this value precedes another one: NaN precedes all values, the larger value precedes the smaller one, and of
  // equal values, the value of the first pixel precedes.
  __device__ bool beats(const Winner& other) const {
    if (isnan(value) || isnan(other.value)) return isnan(value) && (!isnan(other.value) || pixel < other.pixel);
    return value > other.value || (value == other.value && pixel < other.pixel);
  }
};

// Images with their pixels as the rows of a ChannelGrid: block (x, y) processes tile x of the images y, y + gridDim.y,
// and so on. `winners` may be null.
template <class T, int width>
__global__ void __launch_bounds__(channel_threads, 2)
    find_maxima(ChannelGrid grid, std::int64_t images, const T* __restrict__ x, T* __restrict__ y,
                std::int32_t* __restrict__ winners) {
  constexpr int row_length = channel_threads + (width > 1 ? 4 : 0);  // avoids bank conflicts
  __shared__ float values[width][row_length];
  __shared__ std::int32_t numbers[width][row_length];
  const ChannelThread at(grid);
  const int lane = static_cast<int>(threadIdx.x) / grid.tile;
  for (std::int64_t image = blockIdx.y; image < images; image += gridDim.y) {
    const T* pixels = x + image * grid.rows * grid.channels + at.channel;
    Winner best[width];
    if (at.inside) {
      const auto read = [&](std::int64_t row) { return pack_at<width>(pixels + row * grid.channels); };
      each<4>(lane, grid.rows, grid.lanes(), read, [&](std::int64_t row, const Pack<T, width>& pack) {
#pragma unroll
        for (int k = 0; k < width; ++k) {
          const Winner next{load(pack.values[k]), static_cast<std::int32_t>(row)};
          if (next.beats(best[k])) best[k] = next;
        }
      });
    }
    __syncthreads();  // other threads may still read the previous image
#pragma unroll
    for (int k = 0; k < width; ++k) {
      values[k][threadIdx.x] = best[k].value;
      numbers[k][threadIdx.x] = best[k].pixel;
    }
    __syncthreads();
    const std::int64_t channel = own_channel(grid);
    if (channel < 0) continue;
    const int pack = static_cast<int>(threadIdx.x) / width, k = static_cast<int>(threadIdx.x) % width;
    Winner first;
    for (int i = pack; i < channel_threads; i += grid.tile) {
      const Winner next{values[k][i], numbers[k][i]};
      if (next.beats(first)) first = next;
    }
    y[image * grid.channels + channel] = store<T>(first.value);
    if (winners != nullptr) winners[image * grid.channels + channel] = first.pixel;
  }
}

template <class T, int width>
__global__ void __launch_bounds__(channel_threads, 2)
    spread_gradients(ChannelGrid grid, std::int64_t images, const T* __restrict__ dy,
                     const std::int32_t* __restrict__ winners, T* __restrict__ dx) {
  const ChannelThread at(grid);
  if (!at.inside) return;
  const int lane = static_cast<int>(threadIdx.x) / grid.tile;
  for (std::int64_t image = blockIdx.y; image < images; image += gridDim.y) {
    const Pack<T, width> gradients = pack_at<width>(dy + image * grid.channels + at.channel);
    std::int32_t winner[width];
#pragma unroll
    for (int k = 0; k < width; ++k) winner[k] = winners[image * grid.channels + at.channel + k];
    T* pixels = dx + image * grid.rows * grid.channels + at.channel;
    for (std::int64_t row = lane; row < grid.rows; row += grid.lanes()) {
      Pack<T, width> values;
#pragma unroll
      for (int k = 0; k < width; ++k) values.values[k] = winner[k] == row ? gradients.values[k] : store<T>(0.0f);
      pack_at<width>(pixels + row * grid.channels) = values;
    }
  }
}

}  // namespace

Lowering lower_global_max_pool2d(const LowerContext& context) {
  const Shape& x = context.input(0).shape;
  const bool training = context.op.as<GlobalMaxPool2d>().training;
  return with_packs(context.input(0).dtype, x[3], [&](auto type, auto pack) {
    using T = decltype(type);
    constexpr int width = decltype(pack)::value;
    const ImageGrid g(x, width, sizeof(T));
    return own_kernel(context, [g, training](const Buffers& p) {
      launch(find_maxima<T, width>, g.blocks, channel_threads, p.stream, g.grid, g.images, p.in<T>(0), p.out<T>(0),
             training ? p.out<std::int32_t>(1) : nullptr);
    });
  });
}

Lowering lower_global_max_pool2d_grad(const LowerContext& context) {
  const Shape& x = context.op.as<GlobalMaxPool2dGrad>().input;
  return with_packs(context.input(0).dtype, x[3], [&](auto type, auto pack) {
    using T = decltype(type);
    constexpr int width = decltype(pack)::value;
    const ImageGrid g(x, width, sizeof(T));
    return own_kernel(context, [g](const Buffers& p) {
      launch(spread_gradients<T, width>, g.blocks, channel_threads, p.stream, g.grid, g.images, p.in<T>(0),
             p.in<std::int32_t>(1), p.out<T>(0));
    });
  });
}

}  // namespace trainctl::cuda
