// The operands of the products of attention on the CPU, in float32 or in pairs of bfloat16, behind one interface.
//
// Scores and sums are float32 in both. A product has a left operand, whose rows are those of the result, and a right
// operand. FloatProducts keeps both in float32. PairProducts keeps both in pairs of bfloat16 that are neighbours along
// the depth, so that one instruction multiplies twice as many values; it rounds probabilities, and the gradients of
// scores, to bfloat16.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "core/backend/cpu/simd/pairs.h"
#include "core/backend/cpu/simd/product.h"
#include "core/backend/cpu/simd/simd.h"

namespace trainctl::cpu {

constexpr std::int64_t vector_values = 16;
// A count, rounded up to whole vectors.
constexpr std::int64_t whole_vectors(std::int64_t count) {
  return (count + vector_values - 1) / vector_values * vector_values;
}

// Writes rows of whole vectors, times `factor`, to rows of `width` values in T.
template <class T>
void write_rows(const float* from, std::int64_t rows, std::int64_t width, float factor, T* to, std::int64_t step) {
  simd([=]() TRAINCTL_INLINE {
    const std::int64_t stride = whole_vectors(width);
    for (std::int64_t row = 0; row < rows; ++row) {
#pragma omp simd
      for (std::int64_t i = 0; i < width; ++i) to[row * step + i] = store<T>(from[row * stride + i] * factor);
    }
  });
}

// Multiplies the columns of rows that are `stride` values apart by a factor.
inline void scale_rows(float* values, std::int64_t rows, std::int64_t columns, std::int64_t stride, float factor) {
  if (factor == 1.0f) return;
  simd([=]() TRAINCTL_INLINE {
    for (std::int64_t row = 0; row < rows; ++row) {
#pragma omp simd
      for (std::int64_t i = 0; i < columns; ++i) values[row * stride + i] *= factor;
    }
  });
}

// Writes word(row, k) for `depth` words of each row to tiles of `tile` rows, transposed: the tiles follow each other,
// each [depth][tile]. The columns after the last row are 0, up to a whole vector.
template <class Word>
TRAINCTL_INLINE inline void transpose(std::int64_t rows, std::int64_t depth, std::int64_t tile, float* to,
                                      const Word& word) {
  for (std::int64_t first = 0; first < rows; first += 16) {
    float* y = to + first / tile * tile * depth + first % tile;
    const std::int64_t count = std::min<std::int64_t>(16, rows - first);
    for (std::int64_t k = 0; k < depth; ++k) {
      for (std::int64_t row = 0; row < count; ++row) y[k * tile + row] = word(first + row, k);
      for (std::int64_t row = count; row < 16; ++row) y[k * tile + row] = 0;
    }
  }
}

// The members of FloatProducts and PairProducts:
//   depth(n)             the words, along the depth, of n values
//   key_factor(scale)    the part of the scale of scores that copies of keys contain
//   score_factor(scale)  the rest of the scale
//   copy_left()          copies rows of T as a left operand: rows of whole vectors of words
//   copy_right()         copies rows of T as a right operand whose depth are the rows: [depth(rows)][whole vectors]
//   copy_transposed()    copies rows of T as a right operand whose depth are the columns, in tiles (transpose())
//   as_left()            returns a tile of float32 as a left operand; writes it to `memory`, which may be the tile
//   as_left_transposed() the same for the transposed tile, whose depth are the rows: column r, depth k at [k][r]
//   multiply()           computes a product of two operands
// The step of rows of T is in values, and tiles of float32 keep their stride.
struct FloatProducts {
  static constexpr bool left_is_right = true;  // whether copy_left() and copy_right() write the same

  static constexpr std::int64_t depth(std::int64_t values) { return values; }
  static constexpr float key_factor(float scale) { return scale; }
  static constexpr float score_factor(float /*scale*/) { return 1.0f; }

  template <class T>
  static void copy_left(const T* from, std::int64_t step, std::int64_t rows, std::int64_t width, float factor,
                        float* to) {
    simd([=]() TRAINCTL_INLINE {
      const std::int64_t stride = whole_vectors(width);
      for (std::int64_t row = 0; row < rows; ++row) {
        const T* x = from + row * step;
        float* y = to + row * stride;
#pragma omp simd
        for (std::int64_t i = 0; i < width; ++i) y[i] = load(x[i]) * factor;
        for (std::int64_t i = width; i < stride; ++i) y[i] = 0;
      }
    });
  }
  template <class T>
  static void copy_right(const T* from, std::int64_t step, std::int64_t rows, std::int64_t width, float factor,
                         float* to) {
    copy_left(from, step, rows, width, factor, to);
  }
  template <class T>
  static void copy_transposed(const T* from, std::int64_t step, std::int64_t rows, std::int64_t width, float factor,
                              std::int64_t tile, float* to) {
    simd([=]() TRAINCTL_INLINE {
      transpose(rows, width, tile, to,
                [=](std::int64_t row, std::int64_t k) TRAINCTL_INLINE { return load(from[row * step + k]) * factor; });
    });
  }

  static const float* as_left(const float* tile, std::int64_t /*rows*/, std::int64_t /*columns*/,
                              std::int64_t /*stride*/, float* /*memory*/) {
    return tile;
  }
  static const float* as_left_transposed(const float* tile, std::int64_t /*rows*/, std::int64_t /*columns*/,
                                         std::int64_t /*stride*/, float* /*memory*/) {
    return tile;
  }
  static void multiply(const MatrixProduct& product) { cpu::multiply(product); }
};

// Requires multiplies_pairs(), and factors of 1.
struct PairProducts {
  static constexpr bool left_is_right = false;

  static constexpr std::int64_t depth(std::int64_t values) { return (values + 1) / 2; }
  static constexpr float key_factor(float /*scale*/) { return 1.0f; }
  static constexpr float score_factor(float scale) { return scale; }

  static void copy_left(const Bf16* from, std::int64_t step, std::int64_t rows, std::int64_t width, float /*factor*/,
                        float* to) {
    const std::int64_t stride = whole_vectors(depth(width));
    for (std::int64_t row = 0; row < rows; ++row) {
      float* y = to + row * stride;
      std::fill(y + width / 2, y + stride, 0.0f);
      std::memcpy(y, from + row * step, static_cast<std::size_t>(width) * sizeof(Bf16));
    }
  }
  static void copy_right(const Bf16* from, std::int64_t step, std::int64_t rows, std::int64_t width, float /*factor*/,
                         float* to) {
    simd([=]() TRAINCTL_INLINE {
      const std::int64_t stride = whole_vectors(width);
      for (std::int64_t k = 0; k < depth(rows); ++k) {
        const Bf16 *even = from + 2 * k * step, *odd = 2 * k + 1 < rows ? even + step : nullptr;
        float* y = to + k * stride;
        if (odd != nullptr) {
#pragma omp simd
          for (std::int64_t i = 0; i < width; ++i) y[i] = pair_of(even[i], odd[i]);
        } else {
#pragma omp simd
          for (std::int64_t i = 0; i < width; ++i) y[i] = pair_of(even[i], Bf16{0});
        }
        for (std::int64_t i = width; i < stride; ++i) y[i] = 0;
      }
    });
  }
  static void copy_transposed(const Bf16* from, std::int64_t step, std::int64_t rows, std::int64_t width,
                              float /*factor*/, std::int64_t tile, float* to) {
    simd([=]() TRAINCTL_INLINE {
      transpose(rows, depth(width), tile, to, [=](std::int64_t row, std::int64_t k) TRAINCTL_INLINE {
        const Bf16* x = from + row * step + 2 * k;
        if (2 * k + 1 == width) return pair_of(x[0], Bf16{0});
        float pair;
        std::memcpy(&pair, x, sizeof(pair));
        return pair;
      });
    });
  }

  static const float* as_left(const float* tile, std::int64_t rows, std::int64_t columns, std::int64_t stride,
                              float* memory) {
    pair_columns(tile, rows, columns, stride, memory);
    return memory;
  }
  static const float* as_left_transposed(const float* tile, std::int64_t rows, std::int64_t columns,
                                         std::int64_t stride, float* memory) {
    pair_rows(tile, rows, columns, stride, memory);
    return memory;
  }
  static void multiply(const MatrixProduct& product) { multiply_pairs(product); }
};

}  // namespace trainctl::cpu
