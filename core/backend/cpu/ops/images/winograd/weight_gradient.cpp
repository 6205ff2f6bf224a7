// Gradients of kernels by Winograd's minimal filtering: the loops over tiles and channels.
#include "core/backend/cpu/ops/images/winograd/weight_gradient.h"

#include <algorithm>

#include "core/backend/cpu/ops/images/winograd/products.h"
#include "core/backend/cpu/ops/images/winograd/tiles.h"
#include "core/backend/cpu/simd/parallel.h"

namespace trainctl::cpu {

using namespace winograd;

// The tiles that a thread sums, whole blocks but for the last. inputs, gradients: at all points, for a block of tiles;
// square: the pixels of a tile.
template <class T>
struct WinogradWeightGradient::Task {
  const T *x, *dy;
  float *sums, *inputs, *gradients;
  T* square;
  std::int64_t first_tile, last_tile;
};

WinogradWeightGradient::WinogradWeightGradient(const Window& window, const Shape& x, const Shape& y, int threads)
    : shape_{x[0], x[1], x[2], x[3], y[1], y[2], y[3], window.padding_before[0], window.padding_before[1]} {
  constexpr std::int64_t most_block_tiles = 64;
  block_tiles_ = std::clamp<std::int64_t>((shape_.tiles() + block - 1) / block * block, block, most_block_tiles);
  const std::int64_t most = std::min(blocks(), most_bytes / (4 * thread_values()));
  threads_ = static_cast<int>(std::clamp<std::int64_t>(most, 1, threads));
}

std::int64_t WinogradWeightGradient::blocks() const { return (shape_.tiles() + block_tiles_ - 1) / block_tiles_; }

std::int64_t WinogradWeightGradient::thread_values() const {
  return sums() + all_points * (point_step(shape_.in) + point_step(shape_.out) + std::max(shape_.in, shape_.out));
}

std::int64_t WinogradWeightGradient::workspace_bytes() const { return 4 * threads_ * thread_values(); }

template <int lanes, class T>
TRAINCTL_INLINE inline void WinogradWeightGradient::sum(const Task<T>& task) const {
  const std::int64_t in = shape_.in, out = shape_.out, in_step = point_step(in), out_step = point_step(out);
  std::fill_n(task.sums, sums(), 0.0f);
  for (std::int64_t first = task.first_tile; first < task.last_tile; first += block_tiles_) {
    const std::int64_t count = std::min(block_tiles_, task.last_tile - first);
    Tile tile(shape_, first);
    for (std::int64_t t = 0; t < count; ++t, tile.advance(shape_)) {
      const Square<T> x =
          square_of<points>(task.x + tile.image * shape_.in_rows * shape_.in_columns * in, shape_.in_rows,
                            shape_.in_columns, in, tile.row - shape_.top, tile.column - shape_.left, task.square);
      for (std::int64_t c = 0; c < in; c += lanes) {
        transform_square<lanes, InputTransform, points>(
            x, c, task.inputs + (c / block * block_tiles_ + t) * block + c % block, in_step);
      }
      const Square<T> dy =
          square_of<outputs>(task.dy + tile.image * shape_.out_rows * shape_.out_columns * out, shape_.out_rows,
                             shape_.out_columns, out, tile.row, tile.column, task.square);
      for (std::int64_t c = 0; c < out; c += lanes) {
        transform_square<lanes, GradientTransform, outputs>(
            dy, c, task.gradients + (c / block * block_tiles_ + t) * block + c % block, out_step);
      }
    }
    const std::int64_t next = first + count, next_end = std::min(next + block_tiles_, task.last_tile);
    Prefetch<T, false> next_inputs(shape_, task.x, shape_.in_rows, shape_.in_columns, in, next, next_end, 1);
    Prefetch<T, false> next_gradients(shape_, task.dy, shape_.out_rows, shape_.out_columns, out, next, next_end);
    for (int point = 0; point < all_points; ++point) {
      next_inputs.fetch(point);
      next_gradients.fetch(point);
      multiply<lanes, true>({.left = task.inputs + point * in_step,
                             .left_rows = block_tiles_,
                             .right = task.gradients + point * out_step,
                             .right_rows = block_tiles_,
                             .sums = task.sums + point * in * out,
                             .sums_rows = in,
                             .channels = out,
                             .terms = count});
    }
  }
}

// Transforms rows of the sums, counted over all blocks of 16 output channels; a row is an input channel.
template <int lanes>
TRAINCTL_INLINE inline void WinogradWeightGradient::transform_sums(const float* sums, std::int64_t first,
                                                                   std::int64_t last, bool accumulate,
                                                                   float* dkernel) const {
  using Vector = typename VectorOf<lanes>::Type;
  const std::int64_t in = shape_.in, out = shape_.out;
  for (std::int64_t row = first; row < last; ++row) {
    float* to = dkernel + row % in * out + row / in * block;
    for (std::int64_t l = 0; l < block; l += lanes) {
      Vector columns[points][taps];
      for (int j = 0; j < points; ++j) {
        Vector values[points];
        for (int i = 0; i < points; ++i) {
          const float* value = sums + (i * points + j) * in * out + row * block + l;
          load(value, values[i]);
          for (int thread = 1; thread < threads_; ++thread) {
            Vector more;
            load(value + thread * thread_values(), more);
            values[i] += more;
          }
        }
        transform_kernel_gradient(values, columns[j]);
      }
      for (int i = 0; i < taps; ++i) {
        Vector values[points], results[taps];
        for (int j = 0; j < points; ++j) values[j] = columns[j][i];
        transform_kernel_gradient(values, results);
        for (int j = 0; j < taps; ++j) {
          float* tap = to + (i * taps + j) * in * out + l;
          if (accumulate) {
            Vector old;
            load(tap, old);
            results[j] += old;
          }
          store(results[j], tap);
        }
      }
    }
  }
}

template <class T>
void WinogradWeightGradient::run(const T* x, const T* dy, bool accumulate, float* dkernel, float* workspace) const {
  parallel_ranges(threads_, 1, [&](std::int64_t first_thread, std::int64_t last_thread) {
    for (std::int64_t thread = first_thread; thread < last_thread; ++thread) {
      float* memory = workspace + thread * thread_values();
      const Task<T> task{.x = x,
                         .dy = dy,
                         .sums = memory,
                         .inputs = memory + sums(),
                         .gradients = memory + sums() + all_points * point_step(shape_.in),
                         .square = reinterpret_cast<T*>(memory + sums() +
                                                        all_points * (point_step(shape_.in) + point_step(shape_.out))),
                         .first_tile = blocks() * thread / threads_ * block_tiles_,
                         .last_tile = std::min(blocks() * (thread + 1) / threads_ * block_tiles_, shape_.tiles())};
      with_lanes<float>([&](auto width) TRAINCTL_INLINE { sum<width()>(task); });
    }
  });
  parallel_ranges(shape_.out / block * shape_.in, block, [&](std::int64_t first, std::int64_t last) {
    with_lanes<float>([&](auto width)
                          TRAINCTL_INLINE { transform_sums<width()>(workspace, first, last, accumulate, dkernel); });
  });
}

template void WinogradWeightGradient::run(const float*, const float*, bool, float*, float*) const;
template void WinogradWeightGradient::run(const Bf16*, const Bf16*, bool, float*, float*) const;

}  // namespace trainctl::cpu
