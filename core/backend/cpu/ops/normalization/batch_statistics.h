// The mean and the variance of each channel, over all rows or over those that a padding mask shows.
//
// Statistics are computed in chunks of rows, relative to the chunk's first row (shifted sums). The chunks' means and
// sums of squares are combined in float64, so that a large mean does not reduce the precision of the variance.
#pragma once

#include <algorithm>

#include "core/backend/cpu/simd/channels.h"

namespace trainctl::cpu {

// Scratch memory: per-column constants (float, repeated for the folded rows), totals (double), then the chunks'
// results.
struct Scratch {
  float* constants;  // [5][columns]
  double* totals;    // [2][channels]
  float* partials;   // [chunks][columns][2]

  static std::int64_t bytes(const ChannelShape& shape) {
    return shape.channels * 2 * 8 + shape.columns() * 5 * 4 + shape.partials(2) * 4;
  }
  Scratch(const ChannelShape& shape, std::byte* memory) : totals(reinterpret_cast<double*>(memory)) {
    constants = reinterpret_cast<float*>(totals + 2 * shape.channels);
    partials = constants + 5 * shape.columns();
  }
};

// Computes each channel's mean and biased variance from the partials, which are the means of the chunks' columns and
// their sums of squares about these means. rows_of(chunk) returns the number of values in each of these means, and
// `total` is the number of values of a channel. Without values, mean and variance are 0.
template <class RowsOf>
void join_statistics(const ChannelShape& shape, const Scratch& scratch, const RowsOf& rows_of, double total,
                     float* mean, float* variance) {
  const std::int64_t columns = shape.columns();
  const auto each = [&](const auto& add) {
    for (std::int64_t chunk = 0; chunk < shape.chunks; ++chunk) {
      const auto rows = static_cast<double>(rows_of(chunk));
      for (std::int64_t column = 0; column < columns && rows > 0; ++column) {
        const float* partial = scratch.partials + 2 * (chunk * columns + column);
        add(column % shape.channels, rows, static_cast<double>(partial[0]), static_cast<double>(partial[1]));
      }
    }
  };
  double* means = scratch.totals;
  double* squares = scratch.totals + shape.channels;
  std::fill(means, means + 2 * shape.channels, 0.0);
  each([&](std::int64_t c, double rows, double chunk_mean, double) { means[c] += rows / total * chunk_mean; });
  each([&](std::int64_t c, double rows, double chunk_mean, double chunk_squares) {
    squares[c] += chunk_squares + rows * (chunk_mean - means[c]) * (chunk_mean - means[c]);
  });
  for (std::int64_t c = 0; c < shape.channels; ++c) {
    mean[c] = static_cast<float>(means[c]);
    variance[c] = total == 0 || squares[c] < 0 ? 0.0f : static_cast<float>(squares[c] / total);  // NaN stays NaN
  }
}

// Computes the mean and the biased variance of every channel.
template <class T>
void statistics(const ChannelShape& shape, const T* x, const Scratch& scratch, float* mean, float* variance) {
  const std::int64_t columns = shape.columns();
  float* partials = scratch.partials;
  channel_sums(
      shape,
      [=, &shape](std::int64_t chunk) TRAINCTL_INLINE {
        const T* first = x + chunk * shape.chunk_rows * columns;
        return [=](std::int64_t i, std::int64_t column) TRAINCTL_INLINE {
          const float shifted = load(x[i]) - load(first[column]);
          return Pair{shifted, shifted * shifted};
        };
      },
      [=, &shape](std::int64_t chunk, std::int64_t column, std::int64_t width, const float* first_sums,
                  const float* second_sums) TRAINCTL_INLINE {
        const auto rows = static_cast<float>(shape.rows_of(chunk));
        const T* first = x + chunk * shape.chunk_rows * columns + column;
        float* target = partials + 2 * (chunk * columns + column);
        for (std::int64_t c = 0; c < width; ++c) {  // the chunk's mean, and the sum of squares about that mean
          target[2 * c] = load(first[c]) + first_sums[c] / rows;
          target[2 * c + 1] = second_sums[c] - first_sums[c] * first_sums[c] / rows;
        }
      });
  const auto rows_of = [&](std::int64_t chunk) { return shape.rows_of(chunk); };
  join_statistics(shape, scratch, rows_of, static_cast<double>(shape.rows), mean, variance);
}

// The number of rows that a mask shows.
inline std::int64_t count_shown(const std::uint8_t* shown, std::int64_t rows) {
  return rows - std::count(shown, shown + rows, std::uint8_t{0});
}

// Writes the partials of join_statistics() for `width` columns of the rows that the mask shows, at least one.
template <int width, class T>
TRAINCTL_INLINE inline void shown_partials(const T* x, std::int64_t rows, std::int64_t columns,
                                           const std::uint8_t* shown, float* partials) {
  float shift[width] = {}, sums[width] = {}, squares[width] = {};
  std::int64_t count = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    if (shown[row] == 0) continue;
    const T* values = x + row * columns;
    for (int c = 0; count == 0 && c < width; ++c) shift[c] = load(values[c]);
    ++count;
#pragma omp simd
    for (int c = 0; c < width; ++c) {
      const float shifted = load(values[c]) - shift[c];
      sums[c] += shifted;
      squares[c] += shifted * shifted;
    }
  }
  const auto number = static_cast<float>(count);
  for (int c = 0; c < width; ++c) {
    partials[2 * c] = shift[c] + sums[c] / number;
    partials[2 * c + 1] = squares[c] - sums[c] * sums[c] / number;
  }
}

// Computes mean and biased variance of every channel over the rows that a padding mask shows, and returns their number.
// The shape's rows are not folded.
template <class T>
std::int64_t shown_statistics(const ChannelShape& shape, const T* x, const std::uint8_t* shown, const Scratch& scratch,
                              float* mean, float* variance) {
  const std::int64_t columns = shape.columns();
  const auto rows_of = [&](std::int64_t chunk) {
    return count_shown(shown + chunk * shape.chunk_rows, shape.rows_of(chunk));
  };
  parallel_ranges(shape.chunks, 1, [&](std::int64_t begin, std::int64_t end) {
    simd([&]() TRAINCTL_INLINE {
      for (std::int64_t chunk = begin; chunk < end; ++chunk) {
        const std::int64_t first = chunk * shape.chunk_rows;
        if (rows_of(chunk) == 0) continue;
        each_tile(columns, [&](std::int64_t column, auto width) TRAINCTL_INLINE {
          shown_partials<width()>(x + first * columns + column, shape.rows_of(chunk), columns, shown + first,
                                  scratch.partials + 2 * (chunk * columns + column));
        });
      }
    });
  });
  const std::int64_t total = count_shown(shown, shape.rows);
  join_statistics(shape, scratch, rows_of, static_cast<double>(total), mean, variance);
  return total;
}

}  // namespace trainctl::cpu
