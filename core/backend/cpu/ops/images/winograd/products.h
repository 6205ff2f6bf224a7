// Products of blocked matrices by tiles of sums in registers.
//
// A blocked matrix of rows x channels is stored as [channels / 16][rows][16]: the values of 16 channels lie together,
// and rows of a block follow each other. So all addresses within a tile are constants that the compiler knows.
#pragma once

#include <cstdint>

#include "core/backend/cpu/ops/images/winograd/transforms.h"

namespace trainctl::cpu::winograd {

// A product sums = left right, or sums += left' right, of blocked matrices, with `terms` terms.
struct Product {
  const float* left;
  std::int64_t left_rows;
  const float* right;
  std::int64_t right_rows;
  float* sums;
  std::int64_t sums_rows, channels;  // channels of `right` and `sums`
  std::int64_t terms;
};

// The sums of `rows` rows and `vectors` vectors of channels; vectors are `right_step` apart in `right` and `sums_step`
// in `sums`. Not transposed, `left` has its terms along its channels, in `parts` blocks of 16; transposed, along its
// rows.
template <int lanes, int rows, int vectors, bool transposed>
TRAINCTL_INLINE inline void multiply_tile(const float* left, std::int64_t parts, std::int64_t part_step,
                                          std::int64_t depth, const float* right, std::int64_t right_step, float* sums,
                                          std::int64_t sums_step) {
  using Vector = typename VectorOf<lanes>::Type;
  Vector totals[rows][vectors];
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
      totals[r][v] = Vector{};
    }
  }
  for (std::int64_t part = 0; part < parts; ++part, left += part_step) {
    const float* value = left;
    for (std::int64_t k = 0; k < depth; ++k, right += block, value += transposed ? block : 1) {
      Vector factors[vectors];
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) load(right + v * right_step, factors[v]);
#pragma GCC unroll 16
      for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v) add_product(value[transposed ? r : r * block], factors[v], totals[r][v]);
      }
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
      float* to = sums + r * block + v * sums_step;
      if constexpr (transposed) {
        Vector old;
        load(to, old);
        totals[r][v] += old;
      }
      store(totals[r][v], to);
    }
  }
}

// The tiles of `rows` rows and `vectors` vectors of channels that cover 16 rows of sums.
template <int lanes, int rows, int vectors, bool transposed>
TRAINCTL_INLINE inline void multiply_rows(const Product& p, std::int64_t row, std::int64_t channel) {
  const std::int64_t right_step = lanes < block ? lanes : p.right_rows * block;
  const std::int64_t sums_step = lanes < block ? lanes : p.sums_rows * block;
  for (std::int64_t r = row; r < row + block; r += rows) {
    const float* left = transposed ? p.left + row * p.left_rows + (r - row) : p.left + r * block;
    multiply_tile<lanes, rows, vectors, transposed>(left, transposed ? 1 : p.terms / block, p.left_rows * block,
                                                    transposed ? p.terms : block, p.right + channel * p.right_rows,
                                                    right_step, p.sums + channel * p.sums_rows + r * block, sums_step);
  }
}

// Computes sums = left right or, `transposed`, sums += left' right. The rows of sums are a multiple of 16.
template <int lanes, bool transposed>
TRAINCTL_INLINE inline void multiply(const Product& p) {
  for (std::int64_t channel = 0; channel < p.channels;) {
    const bool pair = channel + 2 * block <= p.channels;
    for (std::int64_t row = 0; row < p.sums_rows; row += block) {
      if constexpr (lanes < block) {
        multiply_rows<lanes, 4, 2, transposed>(p, row, channel);
      } else if (pair) {
        multiply_rows<lanes, 8, 2, transposed>(p, row, channel);
      } else {
        multiply_rows<lanes, 16, 1, transposed>(p, row, channel);
      }
    }
    channel += lanes == block && pair ? 2 * block : block;
  }
}

}  // namespace trainctl::cpu::winograd
