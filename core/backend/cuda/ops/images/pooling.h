// Device functions for windows over NHWC images, for the kernels of pooling.
#pragma once

#include <cuda_runtime.h>

#include <cmath>

#include "core/backend/cuda/device/divisor.h"
#include "core/backend/cuda/device/pack.h"
#include "core/graph/ops/images/window.h"
#include "core/tensor/shape.h"

namespace trainctl::cuda {

// One dimension of the window, and of the image.
struct Axis {
  int size, stride, dilation, before;  // before: padding before the image
  int input, output;
  Divisor by_stride, by_dilation, by_input, by_output;

  Axis(const Window& w, std::size_t axis, const Shape& x)
      : size(static_cast<int>(w.size[axis])),
        stride(static_cast<int>(w.strides[axis])),
        dilation(static_cast<int>(w.dilation[axis])),
        before(static_cast<int>(w.padding_before[axis])),
        input(static_cast<int>(x[1 + axis])),
        output(static_cast<int>(w.output(static_cast<int>(axis), x[1 + axis]))),
        by_stride(stride),
        by_dilation(dilation),
        by_input(input),
        by_output(output) {}

  __device__ int position(int out, int index) const { return out * stride - before + index * dilation; }
  // The indices of an output's window that are inside the image: [begin, end).
  __device__ int begin(int out) const {
    const int start = position(out, 0);
    return start < 0 ? min(divided(by_dilation, dilation - 1 - start), size) : 0;
  }
  __device__ int end(int out) const {
    const int rest = input - position(out, 0);
    return max(begin(out), rest <= 0 ? 0 : min(size, divided(by_dilation, rest + dilation - 1)));
  }
  // Whether each position is in the windows of at most two outputs.
  bool has_pairs() const { return dilation == 1 && size <= 2 * stride; }
  // The outputs that may have a position in their windows: [first, last].
  __device__ int first_holder(int position) const {
    const int start = position + before - (size - 1) * dilation;
    return start <= 0 ? 0 : divided(by_stride, start + stride - 1);
  }
  __device__ int last_holder(int position) const { return min(output - 1, divided(by_stride, position + before)); }
  // The index of a position within an output's window; -1 if the window's dilation skips the position.
  __device__ int index(int out, int position) const {
    const int distance = position + before - out * stride, index = divided(by_dilation, distance);
    return index * dilation == distance ? index : -1;
  }

  __device__ static int divided(const Divisor& by, int number) {
    return static_cast<int>(by.quotient(static_cast<std::uint32_t>(number)));
  }
};

// The two outputs that may have a position in their windows, if Axis::has_pairs(), and the indices of the position
// within their windows. If a window does not contain the position, its index is `none` and its output is 0, which
// exists and can be read.
struct HolderPair {
  static constexpr int none = -1;
  int outputs[2], indices[2];

  __device__ HolderPair(const Axis& axis, int position) {
    const int last = Axis::divided(axis.by_stride, position + axis.before);
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      const int output = last - k, index = position + axis.before - output * axis.stride;
      const bool holds = output >= 0 && output < axis.output && index < axis.size;
      outputs[k] = holds ? output : 0;
      indices[k] = holds ? index : none;
    }
  }
};

struct PoolShape {
  Axis rows, columns;
  std::int64_t channels;
  std::uint32_t inputs, outputs;  // number of packs
  Divisor by_packs;               // divides by the number of packs in a pixel
  bool pairs;                     // whether both axes have pairs

  PoolShape(const Window& w, const Shape& x, int width)
      : rows(w, 0, x),
        columns(w, 1, x),
        channels(x[3]),
        inputs(narrow(x.count() / width)),
        outputs(narrow(x[0] * rows.output * columns.output * (x[3] / width))),
        by_packs(x[3] / width),
        pairs(rows.has_pairs() && columns.has_pairs()) {}
};

// The position of a pack in a batch of images.
struct Spot {
  std::int64_t image, channel;
  int row, column;

  __device__ Spot(std::uint32_t i, int pack_width, const Divisor& packs, const Divisor& height, const Divisor& width) {
    const std::uint32_t pixel = packs.quotient(i), line = width.quotient(pixel), of = height.quotient(line);
    channel = static_cast<std::int64_t>(packs.remainder(i, pixel)) * pack_width;
    column = static_cast<int>(width.remainder(pixel, line));
    row = static_cast<int>(height.remainder(line, of));
    image = of;
  }
};

// The positions of pack i of the pooling's input and of its output.
__device__ inline Spot input_spot(const PoolShape& s, std::uint32_t i, int width) {
  return {i, width, s.by_packs, s.rows.by_input, s.columns.by_input};
}
__device__ inline Spot output_spot(const PoolShape& s, std::uint32_t i, int width) {
  return {i, width, s.by_packs, s.rows.by_output, s.columns.by_output};
}

// The offset of a pixel's pack in a batch of images of this height and width.
__device__ inline std::int64_t offset_of(const PoolShape& s, const Spot& at, int height, int width, int row,
                                         int column) {
  return ((at.image * height + row) * width + column) * s.channels + at.channel;
}

// The largest values of an output's windows, by channel, and their indices within them.
template <int width>
struct Maxima {
  float values[width];
  int winners[width];

  // read(offset) returns a Pack of a pixel's values.
  template <class Read>
  __device__ Maxima(const PoolShape& s, const Spot& at, const Read& read) {
    const int top = s.rows.begin(at.row), bottom = s.rows.end(at.row);
    const int left = s.columns.begin(at.column), right = s.columns.end(at.column);
#pragma unroll
    for (int k = 0; k < width; ++k) {
      values[k] = -INFINITY;
      winners[k] = top * s.columns.size + left;
    }
    for (int r = top; r < bottom; ++r) {
      for (int c = left; c < right; ++c) {
        const auto pixel = read(offset_of(s, at, s.rows.input, s.columns.input, s.rows.position(at.row, r),
                                          s.columns.position(at.column, c)));
#pragma unroll
        for (int k = 0; k < width; ++k) {
          const float value = load(pixel.values[k]);
          if (value <= values[k] || isnan(values[k])) continue;  // keeps NaN
          values[k] = value;
          winners[k] = r * s.columns.size + c;
        }
      }
    }
  }

  // Applies relu to the maxima. The index of those that are not above 0 becomes `no_winner`.
  __device__ void apply_relu(int no_winner) {
#pragma unroll
    for (int k = 0; k < width; ++k) {
      if (values[k] > 0 || isnan(values[k])) continue;
      values[k] = 0;
      winners[k] = no_winner;
    }
  }

  // Writes the maxima and their indices as an output's pack at an offset.
  template <class T>
  __device__ void write(std::int64_t offset, T* y, std::uint8_t* winner_indices) const {
    Pack<T, width> pack;
    Pack<std::uint8_t, width> indices;
#pragma unroll
    for (int k = 0; k < width; ++k) {
      pack.values[k] = store<T>(values[k]);
      indices.values[k] = static_cast<std::uint8_t>(winners[k]);
    }
    pack_at<width>(y + offset) = pack;
    if (winner_indices != nullptr) pack_at<width>(winner_indices + offset) = indices;
  }
};

// Sums the gradient of pack i of the input over the outputs that have the pack in their windows: term(pack of dy at an
// offset, that offset, the index within the window, row and column of the output, sums) adds an output's contribution
// to the sums. Indices within the window ascend. The loops are not unrolled: in the number of their rounds, max(max(-a,
// b), c), ptxas 13.0 drops the sign of a on sm_90 (scripts/check-kernels looks for such code).
template <int width, class T, class Term>
__device__ Pack<T, width> gathered(const PoolShape& s, const T* dy, std::uint32_t i, const Term& term) {
  const Spot at = input_spot(s, i, width);
  const int top = s.rows.first_holder(at.row), left = s.columns.first_holder(at.column);
  float sums[width] = {};
#pragma unroll 1
  for (int row = s.rows.last_holder(at.row); row >= top; --row) {
    const int r = s.rows.index(row, at.row);
    if (r < 0) continue;
#pragma unroll 1
    for (int column = s.columns.last_holder(at.column); column >= left; --column) {
      const int c = s.columns.index(column, at.column);
      if (c < 0) continue;
      const std::int64_t offset = offset_of(s, at, s.rows.output, s.columns.output, row, column);
      term(pack_at<width>(dy + offset), offset, r * s.columns.size + c, row, column, sums);
    }
  }
  Pack<T, width> pack;
#pragma unroll
  for (int k = 0; k < width; ++k) pack.values[k] = store<T>(sums[k]);
  return pack;
}

// gathered_by_winners() for windows with pairs: reads together the four outputs that may have the pack in their
// windows.
template <int width, class T>
__device__ Pack<T, width> gathered_by_pairs(const PoolShape& s, const T* dy, const std::uint8_t* winners,
                                            std::uint32_t i) {
  const Spot at = input_spot(s, i, width);
  const HolderPair rows(s.rows, at.row), columns(s.columns, at.column);
  Pack<T, width> dys[4];
  Pack<std::uint8_t, width> winner[4];
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const std::int64_t offset =
        offset_of(s, at, s.rows.output, s.columns.output, rows.outputs[k / 2], columns.outputs[k % 2]);
    dys[k] = pack_at<width>(dy + offset);
    winner[k] = pack_at<width>(winners + offset);
  }
  float sums[width] = {};
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const int row = rows.indices[k / 2], column = columns.indices[k % 2];
    const int index = row < 0 || column < 0 ? HolderPair::none : row * s.columns.size + column;
#pragma unroll
    for (int j = 0; j < width; ++j) sums[j] += winner[k].values[j] == index ? load(dys[k].values[j]) : 0.0f;
  }
  Pack<T, width> pack;
#pragma unroll
  for (int k = 0; k < width; ++k) pack.values[k] = store<T>(sums[k]);
  return pack;
}

// The gradient of max pooling at pack i of the input: the sum of dy over the outputs for which the pack holds the
// maximum.
template <int width, class T>
__device__ Pack<T, width> gathered_by_winners(const PoolShape& s, const T* dy, const std::uint8_t* winners,
                                              std::uint32_t i) {
  if (s.pairs) return gathered_by_pairs<width>(s, dy, winners, i);
  return gathered<width>(
      s, dy, i, [&](const Pack<T, width>& pack, std::int64_t offset, int index, int, int, float(&sums)[width]) {
        const Pack<std::uint8_t, width> winner = pack_at<width>(winners + offset);
#pragma unroll
        for (int k = 0; k < width; ++k) sums[k] += winner.values[k] == index ? load(pack.values[k]) : 0.0f;
      });
}

}  // namespace trainctl::cuda
