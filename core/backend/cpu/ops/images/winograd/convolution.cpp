// Convolutions by Winograd's minimal filtering: the loops over tiles and channels.
#include "core/backend/cpu/ops/images/winograd/convolution.h"

#include <algorithm>

#include "core/backend/cpu/ops/images/winograd/products.h"
#include "core/backend/cpu/ops/images/winograd/tiles.h"
#include "core/backend/cpu/simd/parallel.h"
#include "core/base/format.h"

namespace trainctl::cpu {

using namespace winograd;

namespace {

// The number of tiles of a block: for many channels, whose transformed kernel does not fit in the second cache, it is
// read for more tiles at a time.
std::int64_t most_block_tiles(const Geometry& shape) { return shape.in * shape.out > 128 * 128 ? 64 : 32; }

std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace

std::string winograd_name() { return format("own:winograd:{}", name_of(instruction_set())); }

bool winograd_by_rule(std::int64_t in, const Shape& result) {
  constexpr std::int64_t least_tiles = 4, least_tiles_of_large_kernel = 16, small_kernel = 64 * 64;
  constexpr double least_used = 0.6;
  const std::int64_t out = result[3];
  const Geometry image{1, 0, 0, in, result[1], result[2], out, 0, 0};
  const auto pixels = static_cast<double>(result[1] * result[2]);
  return image.tiles() >= (in * out <= small_kernel ? least_tiles : least_tiles_of_large_kernel) &&
         pixels >= least_used * static_cast<double>(image.tiles() * outputs * outputs);
}

// The tiles that a thread computes, whole blocks but for the last.
template <class T>
struct WinogradConvolution::Task {
  const T* in;
  const float *kernel, *bias;  // kernel: transformed
  float negative_slope;
  T* out;
  float *inputs, *sums;  // at all points, for a block of tiles
  T* square;             // the pixels of a tile
  std::int64_t first_tile, last_tile;
};

bool WinogradConvolution::computes(const Window& window, std::int64_t groups, const Shape& x, const Shape& y) {
  return instruction_set() != InstructionSet::baseline && groups == 1 && window.size == Window::Sizes{taps, taps} &&
         window.strides == Window::Sizes{1, 1} && window.dilation == Window::Sizes{1, 1} && x.back() % block == 0 &&
         y.back() % block == 0;
}

WinogradConvolution::WinogradConvolution(const Window& window, const Shape& x, const Shape& y, bool backward,
                                         int threads)
    : shape_{x[0], x[1], x[2], x[3], y[1], y[2], y[3], window.padding_before[0], window.padding_before[1]},
      backward_(backward) {
  if (backward) {
    std::swap(shape_.in_rows, shape_.out_rows);
    std::swap(shape_.in_columns, shape_.out_columns);
    std::swap(shape_.in, shape_.out);
    shape_.top = taps - 1 - shape_.top;
    shape_.left = taps - 1 - shape_.left;
  }
  const std::int64_t share = (shape_.tiles() + threads - 1) / threads;
  block_tiles_ = std::clamp<std::int64_t>(round_up(share, block), block, most_block_tiles(shape_));
  const std::int64_t most = std::min(blocks(), (most_bytes / 4 - kernel_values()) / thread_values());
  threads_ = static_cast<int>(std::clamp<std::int64_t>(most, 1, threads));
}

std::int64_t WinogradConvolution::blocks() const { return (shape_.tiles() + block_tiles_ - 1) / block_tiles_; }

std::int64_t WinogradConvolution::thread_values() const {
  return all_points * (point_step(shape_.in) + point_step(shape_.out)) + all_points * shape_.in;
}

std::int64_t WinogradConvolution::workspace_bytes() const { return 4 * (kernel_values() + threads_ * thread_values()); }

// Transforms rows of the kernel, counted over all blocks of 16 output channels; a row is an input channel. `rounded`
// says that its values are rounded to bfloat16 before.
template <int lanes, bool rounded, class Kernel>
TRAINCTL_INLINE inline void WinogradConvolution::transform_kernel(const Kernel* kernel, std::int64_t first,
                                                                  std::int64_t last, float* transformed) const {
  using Vector = typename VectorOf<lanes>::Type;
  const std::int64_t in = shape_.in, out = shape_.out;
  for (std::int64_t row = first; row < last; ++row) {
    const std::int64_t channel = row % in;
    for (std::int64_t first_out = row / in * block, l = 0; l < block; l += lanes) {
      Vector columns[taps][points];
      for (int j = 0; j < taps; ++j) {
        Vector values[taps];
        for (int i = 0; i < taps; ++i) {
          if (backward_) {
            const Kernel* tap = kernel + ((taps - 1 - i) * taps + taps - 1 - j) * in * out + channel;
            for (int lane = 0; lane < lanes; ++lane) values[i][lane] = cpu::load(tap[(first_out + l + lane) * in]);
          } else {
            load(kernel + ((i * taps + j) * in + channel) * out + first_out + l, values[i]);
          }
          if constexpr (rounded) round_to_bf16(values[i]);
        }
        winograd::transform_kernel(values, columns[j]);
      }
      for (int i = 0; i < points; ++i) {
        Vector values[taps] = {columns[0][i], columns[1][i], columns[2][i]}, results[points];
        winograd::transform_kernel(values, results);
        for (int j = 0; j < points; ++j) {
          store(results[j], transformed + ((i * points + j) * in * out) + row * block + l);
        }
      }
    }
  }
}

// Transforms the pixels of a block of `count` tiles.
template <int lanes, class T>
TRAINCTL_INLINE inline void WinogradConvolution::transform_inputs(const Task<T>& task, std::int64_t first,
                                                                  std::int64_t count) const {
  Tile tile(shape_, first);
  for (std::int64_t t = 0; t < count; ++t, tile.advance(shape_)) {
    const T* image = task.in + tile.image * shape_.in_rows * shape_.in_columns * shape_.in;
    const Square<T> square = square_of<points>(image, shape_.in_rows, shape_.in_columns, shape_.in,
                                               tile.row - shape_.top, tile.column - shape_.left, task.square);
    for (std::int64_t c = 0; c < shape_.in; c += lanes) {
      float* values = task.inputs + (c / block * block_tiles_ + t) * block + c % block;
      transform_square<lanes, InputTransform, points>(square, c, values, point_step(shape_.in));
    }
  }
}

// Computes the products at all points, and fetches the pixels that are read and written next.
template <int lanes, class T>
TRAINCTL_INLINE inline void WinogradConvolution::multiply(const Task<T>& task, std::int64_t first,
                                                          std::int64_t count) const {
  const std::int64_t in = shape_.in, out = shape_.out;
  const std::int64_t next = first + count, next_end = std::min(next + block_tiles_, task.last_tile);
  Prefetch<T, false> inputs(shape_, task.in, shape_.in_rows, shape_.in_columns, in, next, next_end, 1);
  Prefetch<T, true> results(shape_, task.out, shape_.out_rows, shape_.out_columns, out, first, next);
  for (int point = 0; point < all_points; ++point) {
    inputs.fetch(point);
    results.fetch(point);
    winograd::multiply<lanes, false>({.left = task.inputs + point * point_step(in),
                                      .left_rows = block_tiles_,
                                      .right = task.kernel + point * in * out,
                                      .right_rows = in,
                                      .sums = task.sums + point * point_step(out),
                                      .sums_rows = block_tiles_,
                                      .channels = out,
                                      .terms = in});
  }
}

// Writes the outputs of a tile, whose sums are those of row t of a block: `whole` if all of its pixels are in the
// image.
template <int lanes, bool rounds, bool whole, class T>
TRAINCTL_INLINE inline void WinogradConvolution::write_tile(const Task<T>& task, std::int64_t t,
                                                            const Tile& tile) const {
  using Vector = typename VectorOf<lanes>::Type;
  const std::int64_t channels = shape_.out, row_step = shape_.out_columns * channels;
  const std::int64_t rows = shape_.out_rows - tile.row, columns = shape_.out_columns - tile.column;
  T* pixels = task.out + (tile.image * shape_.out_rows + tile.row) * row_step + tile.column * channels;
  const float slope = task.negative_slope;
  const bool drops_negative = slope == 0;  // a product would make -0 of negative values, and NaN of -infinity
  for (std::int64_t c = 0; c < channels; c += lanes) {
    Vector bias{};
    if (task.bias != nullptr) load(task.bias + c, bias);
    const float* sums = task.sums + (c / block * block_tiles_ + t) * block + c % block;
    transform_to_outputs<lanes>(sums, point_step(channels),
                                [&](int row, int column, const Vector& value) TRAINCTL_INLINE {
                                  if (!whole && (row >= rows || column >= columns)) return;
                                  const Vector y = value + bias;
                                  const Vector negative = drops_negative ? Vector{} : y * slope;
                                  const Vector result = y <= 0 ? negative : y;
                                  store_rounded<rounds>(result, pixels + row * row_step + column * channels + c);
                                });
  }
}

template <int lanes, bool rounds, class T>
TRAINCTL_INLINE inline void WinogradConvolution::compute(const Task<T>& task) const {
  for (std::int64_t first = task.first_tile; first < task.last_tile; first += block_tiles_) {
    const std::int64_t count = std::min(block_tiles_, task.last_tile - first);
    transform_inputs<lanes>(task, first, count);
    multiply<lanes>(task, first, count);
    Tile tile(shape_, first);
    for (std::int64_t t = 0; t < count; ++t, tile.advance(shape_)) {
      if (tile.row + outputs <= shape_.out_rows && tile.column + outputs <= shape_.out_columns) {
        write_tile<lanes, rounds, true>(task, t, tile);
      } else {
        write_tile<lanes, rounds, false>(task, t, tile);
      }
    }
  }
}

template <class T, class Kernel>
void WinogradConvolution::run(const T* in, const Kernel* kernel, const float* bias, float negative_slope, T* out,
                              float* workspace) const {
  if (shape_.tiles() == 0) return;
  float* transformed = workspace;
  float* tiles = transformed + kernel_values();
  parallel_ranges(shape_.out / block * shape_.in, block, [&](std::int64_t first, std::int64_t last) {
    constexpr bool rounded = std::is_same_v<T, Bf16> && std::is_same_v<Kernel, float>;
    with_lanes<float>([&](auto width)
                          TRAINCTL_INLINE { transform_kernel<width(), rounded>(kernel, first, last, transformed); });
  });
  parallel_ranges(threads_, 1, [&](std::int64_t first_thread, std::int64_t last_thread) {
    for (std::int64_t thread = first_thread; thread < last_thread; ++thread) {
      float* square = tiles + thread * thread_values();
      const Task<T> task{.in = in,
                         .kernel = transformed,
                         .bias = bias,
                         .negative_slope = negative_slope,
                         .out = out,
                         .inputs = square + all_points * shape_.in,
                         .sums = square + all_points * (shape_.in + point_step(shape_.in)),
                         .square = reinterpret_cast<T*>(square),
                         .first_tile = blocks() * thread / threads_ * block_tiles_,
                         .last_tile = std::min(blocks() * (thread + 1) / threads_ * block_tiles_, shape_.tiles())};
      with_lanes<T>([&](auto width) TRAINCTL_INLINE { compute<width(), width.rounds>(task); });
    }
  });
}

template void WinogradConvolution::run(const float*, const float*, const float*, float, float*, float*) const;
template void WinogradConvolution::run(const Bf16*, const float*, const float*, float, Bf16*, float*) const;
template void WinogradConvolution::run(const Bf16*, const Bf16*, const float*, float, Bf16*, float*) const;

}  // namespace trainctl::cpu
