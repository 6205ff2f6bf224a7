// The squares of pixels of a tile, and their transforms.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "core/backend/cpu/ops/images/winograd/geometry.h"
#include "core/backend/cpu/ops/images/winograd/transforms.h"

namespace trainctl::cpu::winograd {

// A square of pixels of T in memory.
template <class T>
struct Square {
  const T* pixels;
  std::int64_t row_step, column_step;
};

// Sets the values [first, last), a multiple of 16 values, to 0.
template <class T>
TRAINCTL_INLINE inline void set_zero(T* values, std::int64_t first, std::int64_t last) {
  for (std::int64_t k = first; k < last; k += block) std::memset(values + k, 0, block * sizeof(T));
}

// Returns the square of size x size pixels of an image [rows, columns, channels] that begins at a row and column. If a
// part of it lies outside of the image, it is copied to `copy` with zeros for that part.
template <int size, class T>
TRAINCTL_INLINE inline Square<T> square_of(const T* image, std::int64_t rows, std::int64_t columns,
                                           std::int64_t channels, std::int64_t row, std::int64_t column, T* copy) {
  if (row >= 0 && column >= 0 && row + size <= rows && column + size <= columns) {
    return {image + (row * columns + column) * channels, columns * channels, channels};
  }
  const std::int64_t first = std::clamp<std::int64_t>(-column, 0, size) * channels;  // of a row of the copy
  const std::int64_t last = std::clamp<std::int64_t>(columns - column, 0, size) * channels;
  const std::int64_t values = size * channels;
  T* to = copy;
  for (std::int64_t r = row; r < row + size; ++r, to += values) {
    if (r < 0 || r >= rows || first >= last) {
      set_zero(to, 0, values);
      continue;
    }
    const T* from = image + (r * columns + column) * channels;
    set_zero(to, 0, first);
    for (std::int64_t k = first; k < last; k += block) std::memcpy(to + k, from + k, block * sizeof(T));
    set_zero(to, last, values);
  }
  return {copy, size * channels, channels};
}

// Transforms `lanes` channels of a square of size x size pixels to values at all points, which are written `step`
// apart. `Transform` has the function half<Half>(values, results).
template <int lanes, class Transform, int size, class T>
TRAINCTL_INLINE inline void transform_square(const Square<T>& square, std::int64_t channel, float* to,
                                             std::int64_t step) {
  using Vector = typename VectorOf<lanes>::Type;
  const auto half = [&](auto which) TRAINCTL_INLINE {
    constexpr Half rows = which();
    Vector columns[size][3];
#pragma GCC unroll 6
    for (int j = 0; j < size; ++j) {
      Vector values[size];
#pragma GCC unroll 6
      for (int i = 0; i < size; ++i) {
        load(square.pixels + i * square.row_step + j * square.column_step + channel, values[i]);
      }
      Transform::template half<rows>(values, columns[j]);
    }
    float* out = to + (rows == Half::first ? 0 : 3 * points) * step;
#pragma GCC unroll 3
    for (int i = 0; i < 3; ++i) {
      Vector values[size], results[2][3];
#pragma GCC unroll 6
      for (int j = 0; j < size; ++j) values[j] = columns[j][i];
      Transform::template half<Half::first>(values, results[0]);
      Transform::template half<Half::second>(values, results[1]);
#pragma GCC unroll 6
      for (int j = 0; j < points; ++j, out += step) store(results[j / 3][j % 3], out);
    }
  };
  half(std::integral_constant<Half, Half::first>{});
  half(std::integral_constant<Half, Half::second>{});
}

struct InputTransform {
  template <Half which, class Vector>
  TRAINCTL_INLINE static void half(const Vector (&values)[6], Vector (&results)[3]) {
    transform_input<which>(values, results);
  }
};

struct GradientTransform {
  template <Half which, class Vector>
  TRAINCTL_INLINE static void half(const Vector (&values)[4], Vector (&results)[3]) {
    transform_gradient<which>(values, results);
  }
};

// Calls use(row, column, value) for the 4x4 outputs of `lanes` channels, from their values at all points, which lie
// `step` apart. `use` must be inlinable (TRAINCTL_INLINE).
template <int lanes, class Use>
TRAINCTL_INLINE inline void transform_to_outputs(const float* from, std::int64_t step, const Use& use) {
  using Vector = typename VectorOf<lanes>::Type;
  const auto half = [&](auto which) TRAINCTL_INLINE {
    constexpr Half rows = which();
    Vector columns[points][2];
#pragma GCC unroll 6
    for (int j = 0; j < points; ++j) {
      Vector values[points];
#pragma GCC unroll 6
      for (int i = 0; i < points; ++i) load(from + (i * points + j) * step, values[i]);
      transform_output<rows>(values, columns[j]);
    }
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      Vector values[points], results[2][2];
#pragma GCC unroll 6
      for (int j = 0; j < points; ++j) values[j] = columns[j][i];
      transform_output<Half::first>(values, results[0]);
      transform_output<Half::second>(values, results[1]);
      const int row = 2 * i + (rows == Half::first ? 0 : 1);
#pragma GCC unroll 4
      for (int column = 0; column < outputs; ++column) use(row, column, results[column % 2][column / 2]);
    }
  };
  half(std::integral_constant<Half, Half::first>{});
  half(std::integral_constant<Half, Half::second>{});
}

// Fetches 4x4 pixels of each tile of a block into the caches, while the products at the points are computed, which read
// little memory.
template <class T, bool for_writing>
class Prefetch {
 public:
  // The pixels are those of images [..., rows, columns, channels] that begin `shift` pixels below and on the right of
  // the first output of a tile.
  TRAINCTL_INLINE Prefetch(const Geometry& shape, const T* images, std::int64_t rows, std::int64_t columns,
                           std::int64_t channels, std::int64_t first, std::int64_t last, std::int64_t shift = 0)
      : shape_(shape),
        images_(images),
        rows_(rows),
        columns_(columns),
        channels_(channels),
        shift_(shift),
        tile_(shape, first),
        count_(std::max<std::int64_t>(0, last - first)) {}

  // Fetches the pixels of the tiles whose turn it is at this point.
  TRAINCTL_INLINE void fetch(int point) {
    for (; fetched_ < count_ * (point + 1) / all_points; ++fetched_, tile_.advance(shape_)) {
      const std::int64_t row = tile_.row + shift_, column = tile_.column + shift_;
      const std::int64_t values = std::min<std::int64_t>(outputs, columns_ - column) * channels_;
      for (std::int64_t r = row; r < std::min(row + outputs, rows_); ++r) {
        const T* pixels = images_ + ((tile_.image * rows_ + r) * columns_ + column) * channels_;
        for (std::int64_t k = 0; k < values; k += line) __builtin_prefetch(pixels + k, for_writing ? 1 : 0, 2);
      }
    }
  }

 private:
  static constexpr std::int64_t line = 64 / sizeof(T);  // the values of a line of the caches

  const Geometry& shape_;
  const T* images_;
  std::int64_t rows_, columns_, channels_, shift_;
  Tile tile_;
  std::int64_t count_, fetched_ = 0;
};

}  // namespace trainctl::cpu::winograd
