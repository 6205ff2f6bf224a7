// Pools NHWC images, forward and backward. Gradients are gathered by input pixel, so that one thread computes each
// value and rounds it once.
#include "core/backend/cuda/ops/images/pooling.h"

#include "core/backend/cuda/device/channels.h"
#include "core/backend/cuda/kernels.h"
#include "core/graph/ops/images/pool2d.h"

namespace trainctl::cuda {
namespace {

// winners may be null.
template <class T, int width>
__global__ void max_pool(PoolShape s, bool relu, const T* __restrict__ x, T* __restrict__ y,
                         std::uint8_t* __restrict__ winners) {
  for (auto i = static_cast<std::uint32_t>(first_element()); i < s.outputs; i += element_stride()) {
    const auto read = [x](std::int64_t offset) { return pack_at<width>(x + offset); };
    Maxima<width> maxima(s, output_spot(s, i, width), read);
    if (relu) maxima.apply_relu(Pool2d::no_winner);
    maxima.write(static_cast<std::int64_t>(i) * width, y, winners);
  }
}

template <class T, int width>
__global__ void average_pool(PoolShape s, const T* __restrict__ x, T* __restrict__ y) {
  for (auto i = static_cast<std::uint32_t>(first_element()); i < s.outputs; i += element_stride()) {
    const Spot at = output_spot(s, i, width);
    const int top = s.rows.begin(at.row), bottom = s.rows.end(at.row);
    const int left = s.columns.begin(at.column), right = s.columns.end(at.column);
    float sum[width] = {};
    for (int r = top; r < bottom; ++r) {
      for (int c = left; c < right; ++c) {
        const Pack<T, width> pixel =
            pack_at<width>(x + offset_of(s, at, s.rows.input, s.columns.input, s.rows.position(at.row, r),
                                         s.columns.position(at.column, c)));
#pragma unroll
        for (int k = 0; k < width; ++k) sum[k] += load(pixel.values[k]);
      }
    }
    const int count = (bottom - top) * (right - left);
    const float scale = count > 0 ? 1.0f / static_cast<float>(count) : 0.0f;
    Pack<T, width> values;
#pragma unroll
    for (int k = 0; k < width; ++k) values.values[k] = store<T>(sum[k] * scale);
    pack_at<width>(y + static_cast<std::int64_t>(i) * width) = values;
  }
}

// Computes dx for each input pixel: from the winners or, if `winners` is null, as an equal share of each output that
// has the pixel in its window.
template <class T, int width>
__global__ void pool_gradient(PoolShape s, const T* __restrict__ dy, const std::uint8_t* __restrict__ winners,
                              T* __restrict__ dx) {
  const auto share = [&](const Pack<T, width>& pack, std::int64_t, int, int row, int column, float(&sums)[width]) {
    const int count = (s.rows.end(row) - s.rows.begin(row)) * (s.columns.end(column) - s.columns.begin(column));
    const float scale = 1.0f / static_cast<float>(count);
#pragma unroll
    for (int k = 0; k < width; ++k) sums[k] += load(pack.values[k]) * scale;
  };
  for (auto i = static_cast<std::uint32_t>(first_element()); i < s.inputs; i += element_stride()) {
    pack_at<width>(dx + static_cast<std::int64_t>(i) * width) =
        winners != nullptr ? gathered_by_winners<width>(s, dy, winners, i) : gathered<width>(s, dy, i, share);
  }
}

// Images with their pixels as the rows of a ChannelGrid: block (x, y) processes tile x of the images y, y + gridDim.y,
// ...
template <class T, int width>
__global__ void __launch_bounds__(channel_threads, 2)
    global_average_pool(ChannelGrid grid, std::int64_t images, const T* __restrict__ x, T* __restrict__ y) {
  const ChannelThread at(grid);
  const int lane = static_cast<int>(threadIdx.x) / grid.tile;
  const float scale = 1.0f / static_cast<float>(grid.rows);
  for (std::int64_t image = blockIdx.y; image < images; image += gridDim.y) {
    const T* pixels = x + image * grid.rows * grid.channels + at.channel;
    float values[1][width] = {};
    if (at.inside) {
      const auto read = [&](std::int64_t row) { return pack_at<width>(pixels + row * grid.channels); };
      each<4>(lane, grid.rows, grid.lanes(), read, [&](std::int64_t, const Pack<T, width>& pack) {
#pragma unroll
        for (int k = 0; k < width; ++k) values[0][k] += load(pack.values[k]);
      });
    }
    float sums[1];
    sum_lanes(values, grid.tile, sums);
    const std::int64_t channel = own_channel(grid);
    if (channel >= 0) y[image * grid.channels + channel] = store<T>(sums[0] * scale);
  }
}

template <class T, int width>
__global__ void __launch_bounds__(channel_threads, 2)
    global_average_pool_gradient(ChannelGrid grid, std::int64_t images, const T* __restrict__ dy, T* __restrict__ dx) {
  const ChannelThread at(grid);
  if (!at.inside) return;
  const int lane = static_cast<int>(threadIdx.x) / grid.tile;
  const float scale = 1.0f / static_cast<float>(grid.rows);
  for (std::int64_t image = blockIdx.y; image < images; image += gridDim.y) {
    Pack<T, width> values = pack_at<width>(dy + image * grid.channels + at.channel);
#pragma unroll
    for (int k = 0; k < width; ++k) values.values[k] = store<T>(load(values.values[k]) * scale);
    T* pixels = dx + image * grid.rows * grid.channels + at.channel;
    for (std::int64_t row = lane; row < grid.rows; row += grid.lanes()) {
      pack_at<width>(pixels + row * grid.channels) = values;
    }
  }
}

}  // namespace

Lowering lower_pool2d(const LowerContext& context) {
  const auto& def = context.op.as<Pool2d>();
  const Shape& x = context.input(0).shape;
  return with_packs(context.input(0).dtype, x[3], [&](auto type, auto pack) {
    using T = decltype(type);
    constexpr int width = decltype(pack)::value;
    const PoolShape s(def.window, x, width);
    return own_kernel(context, [s, mode = def.mode, training = def.training, relu = def.relu](const Buffers& p) {
      const int blocks = blocks_for(s.outputs);
      if (mode == PoolMode::average) {
        launch(average_pool<T, width>, blocks, block_threads, p.stream, s, p.in<T>(0), p.out<T>(0));
      } else {
        launch(max_pool<T, width>, blocks, block_threads, p.stream, s, relu, p.in<T>(0), p.out<T>(0),
               training ? p.out<std::uint8_t>(1) : nullptr);
      }
    });
  });
}

Lowering lower_pool2d_grad(const LowerContext& context) {
  const auto& def = context.op.as<Pool2dGrad>();
  return with_packs(context.input(0).dtype, def.input[3], [&](auto type, auto pack) {
    using T = decltype(type);
    constexpr int width = decltype(pack)::value;
    const PoolShape s(def.window, def.input, width);
    return own_kernel(context, [s, max = def.mode == PoolMode::max](const Buffers& p) {
      launch(pool_gradient<T, width>, blocks_for(s.inputs), block_threads, p.stream, s, p.in<T>(0),
             max ? p.in<std::uint8_t>(1) : nullptr, p.out<T>(0));
    });
  });
}

Lowering lower_global_average_pool2d(const LowerContext& context) {
  const Shape& x = context.input(0).shape;
  return with_packs(context.input(0).dtype, x[3], [&](auto type, auto pack) {
    using T = decltype(type);
    constexpr int width = decltype(pack)::value;
    const ImageGrid g(x, width, sizeof(T));
    return own_kernel(context, [g](const Buffers& p) {
      launch(global_average_pool<T, width>, g.blocks, channel_threads, p.stream, g.grid, g.images, p.in<T>(0),
             p.out<T>(0));
    });
  });
}

Lowering lower_global_average_pool2d_grad(const LowerContext& context) {
  const Shape& x = context.op.as<GlobalAveragePool2dGrad>().input;
  return with_packs(context.input(0).dtype, x[3], [&](auto type, auto pack) {
    using T = decltype(type);
    constexpr int width = decltype(pack)::value;
    const ImageGrid g(x, width, sizeof(T));
    return own_kernel(context, [g](const Buffers& p) {
      launch(global_average_pool_gradient<T, width>, g.blocks, channel_threads, p.stream, g.grid, g.images, p.in<T>(0),
             p.out<T>(0));
    });
  });
}

}  // namespace trainctl::cuda
