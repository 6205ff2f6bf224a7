// Pooling over NHWC images, forward and backward. Gradients are gathered by input pixel, so that nothing is added up by
// several threads and each value is rounded once.
#include "core/graph/ops/pooling.h"

#include "core/backend/cuda/channels.h"
#include "core/backend/cuda/kernels.h"

namespace trainctl::cuda {
namespace {

// One dimension of the window, and of the image.
struct Axis {
  int size, stride, dilation, before;  // before: padding
  int input, output;

  Axis(const Window& w, std::size_t axis, const Shape& x)
      : size(static_cast<int>(w.size[axis])),
        stride(static_cast<int>(w.strides[axis])),
        dilation(static_cast<int>(w.dilation[axis])),
        before(static_cast<int>(w.padding_before[axis])),
        input(static_cast<int>(x[1 + axis])),
        output(static_cast<int>(w.output(static_cast<int>(axis), x[1 + axis]))) {}

  __device__ int position(int out, int index) const { return out * stride - before + index * dilation; }
  // The indices of an output's window that lie inside the image: [begin, end).
  __device__ int begin(int out) const {
    const int start = position(out, 0);
    return start < 0 ? min((dilation - 1 - start) / dilation, size) : 0;
  }
  __device__ int end(int out) const {
    const int room = input - position(out, 0);
    return max(begin(out), room <= 0 ? 0 : min(size, (room + dilation - 1) / dilation));
  }
  // The outputs whose windows may hold a position: [first, last].
  __device__ int first_holder(int position) const {
    const int start = position + before - (size - 1) * dilation;
    return start <= 0 ? 0 : (start + stride - 1) / stride;
  }
  __device__ int last_holder(int position) const { return min(output - 1, (position + before) / stride); }
  // The index of a position within an output's window, or -1.
  __device__ int index(int out, int position) const {
    const int distance = position + before - out * stride;
    return distance % dilation == 0 ? distance / dilation : -1;
  }
};

struct PoolShape {
  Axis rows, columns;
  std::int64_t channels;
  std::uint32_t packs;            // of a pixel
  std::uint32_t inputs, outputs;  // packs in all

  PoolShape(const Window& w, const Shape& x, int width)
      : rows(w, 0, x),
        columns(w, 1, x),
        channels(x[3]),
        packs(narrow(x[3] / width)),
        inputs(narrow(x.count() / width)),
        outputs(narrow(x[0] * rows.output * columns.output * packs)) {}
};

// A pack of a batch of images.
struct Spot {
  std::int64_t image, channel;
  int row, column;

  __device__ Spot(std::uint32_t i, std::uint32_t packs, int height, int width, int pack_width) {
    const std::uint32_t pixel = i / packs, line = pixel / static_cast<std::uint32_t>(width);
    channel = static_cast<std::int64_t>(i - pixel * packs) * pack_width;
    column = static_cast<int>(pixel - line * static_cast<std::uint32_t>(width));
    image = line / static_cast<std::uint32_t>(height);
    row = static_cast<int>(line % static_cast<std::uint32_t>(height));
  }
};

// Where the values of a pixel's pack begin in a batch of images of this height and width.
__device__ inline std::int64_t place_of(const PoolShape& s, const Spot& at, int height, int width, int row,
                                        int column) {
  return ((at.image * height + row) * width + column) * s.channels + at.channel;
}

// winners may be null.
template <class T, int width>
__global__ void max_pool(PoolShape s, const T* __restrict__ x, T* __restrict__ y, std::uint8_t* __restrict__ winners) {
  for (auto i = static_cast<std::uint32_t>(first_element()); i < s.outputs; i += element_stride()) {
    const Spot at(i, s.packs, s.rows.output, s.columns.output, width);
    const int top = s.rows.begin(at.row), bottom = s.rows.end(at.row);
    const int left = s.columns.begin(at.column), right = s.columns.end(at.column);
    float best[width];
    int winner[width];
#pragma unroll
    for (int k = 0; k < width; ++k) {
      best[k] = -INFINITY;
      winner[k] = top * s.columns.size + left;
    }
    for (int r = top; r < bottom; ++r) {
      for (int c = left; c < right; ++c) {
        const Pack<T, width> pixel =
            pack_at<width>(x + place_of(s, at, s.rows.input, s.columns.input, s.rows.position(at.row, r),
                                        s.columns.position(at.column, c)));
#pragma unroll
        for (int k = 0; k < width; ++k) {
          const float value = load(pixel.values[k]);
          if (value <= best[k] || isnan(best[k])) continue;  // NaN wins
          best[k] = value;
          winner[k] = r * s.columns.size + c;
        }
      }
    }
    Pack<T, width> values;
    Pack<std::uint8_t, width> indices;
#pragma unroll
    for (int k = 0; k < width; ++k) {
      values.values[k] = store<T>(best[k]);
      indices.values[k] = static_cast<std::uint8_t>(winner[k]);
    }
    const std::int64_t place = static_cast<std::int64_t>(i) * width;
    pack_at<width>(y + place) = values;
    if (winners != nullptr) pack_at<width>(winners + place) = indices;
  }
}

template <class T, int width>
__global__ void average_pool(PoolShape s, const T* __restrict__ x, T* __restrict__ y) {
  for (auto i = static_cast<std::uint32_t>(first_element()); i < s.outputs; i += element_stride()) {
    const Spot at(i, s.packs, s.rows.output, s.columns.output, width);
    const int top = s.rows.begin(at.row), bottom = s.rows.end(at.row);
    const int left = s.columns.begin(at.column), right = s.columns.end(at.column);
    float sum[width] = {};
    for (int r = top; r < bottom; ++r) {
      for (int c = left; c < right; ++c) {
        const Pack<T, width> pixel =
            pack_at<width>(x + place_of(s, at, s.rows.input, s.columns.input, s.rows.position(at.row, r),
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

// dx by input pixel: what each output that holds it hands back, its winner's whole gradient or, where winners is null,
// an equal share. Windows' indices ascend.
template <class T, int width>
__global__ void pool_gradient(PoolShape s, const T* __restrict__ dy, const std::uint8_t* __restrict__ winners,
                              T* __restrict__ dx) {
  for (auto i = static_cast<std::uint32_t>(first_element()); i < s.inputs; i += element_stride()) {
    const Spot at(i, s.packs, s.rows.input, s.columns.input, width);
    const int top = s.rows.first_holder(at.row), left = s.columns.first_holder(at.column);
    float sum[width] = {};
    for (int row = s.rows.last_holder(at.row); row >= top; --row) {
      const int r = s.rows.index(row, at.row);
      if (r < 0) continue;
      for (int column = s.columns.last_holder(at.column); column >= left; --column) {
        const int c = s.columns.index(column, at.column);
        if (c < 0) continue;
        const std::int64_t place = place_of(s, at, s.rows.output, s.columns.output, row, column);
        const Pack<T, width> pack = pack_at<width>(dy + place);
        if (winners != nullptr) {
          const Pack<std::uint8_t, width> winner = pack_at<width>(winners + place);
          const int index = r * s.columns.size + c;
#pragma unroll
          for (int k = 0; k < width; ++k) sum[k] += winner.values[k] == index ? load(pack.values[k]) : 0.0f;
        } else {
          const int count = (s.rows.end(row) - s.rows.begin(row)) * (s.columns.end(column) - s.columns.begin(column));
          const float scale = 1.0f / static_cast<float>(count);
#pragma unroll
          for (int k = 0; k < width; ++k) sum[k] += load(pack.values[k]) * scale;
        }
      }
    }
    Pack<T, width> values;
#pragma unroll
    for (int k = 0; k < width; ++k) values.values[k] = store<T>(sum[k]);
    pack_at<width>(dx + static_cast<std::int64_t>(i) * width) = values;
  }
}

// Images whose pixels are the rows of a ChannelGrid: block (x, y) takes tile x of the images y, y + gridDim.y, ...
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

// The grid of global pooling's kernels over images x, and their blocks.
struct ImageGrid {
  ChannelGrid grid;
  std::int64_t images;
  dim3 blocks;

  ImageGrid(const Shape& x, int width, std::int64_t element)
      : grid(x[1] * x[2], x[3], width, element, 1, 1),
        images(x[0]),
        blocks(static_cast<unsigned>(grid.tiles), static_cast<unsigned>(std::clamp<std::int64_t>(x[0], 1, 1 << 15))) {}
};

}  // namespace

Lowering lower_pool2d(const LowerContext& context) {
  const auto& def = context.op.as<Pool2d>();
  const Shape& x = context.input(0).shape;
  return with_packs(context.input(0).dtype, x[3], [&](auto type, auto pack) {
    using T = decltype(type);
    constexpr int width = decltype(pack)::value;
    const PoolShape s(def.window, x, width);
    return own_kernel(context, [s, mode = def.mode, training = def.training](const Places& p) {
      const int blocks = blocks_for(s.outputs);
      if (mode == PoolMode::average) {
        launch(average_pool<T, width>, blocks, block_threads, p.stream, s, p.in<T>(0), p.out<T>(0));
      } else {
        launch(max_pool<T, width>, blocks, block_threads, p.stream, s, p.in<T>(0), p.out<T>(0),
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
    return own_kernel(context, [s, max = def.mode == PoolMode::max](const Places& p) {
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
    return own_kernel(context, [g](const Places& p) {
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
    return own_kernel(context, [g](const Places& p) {
      launch(global_average_pool_gradient<T, width>, g.blocks, channel_threads, p.stream, g.grid, g.images, p.in<T>(0),
             p.out<T>(0));
    });
  });
}

}  // namespace trainctl::cuda
