// Tiles of sums for each instruction set: a tile has up to 6 rows and 64 columns.
#include "core/backend/cpu/simd/product.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/backend/cpu/simd/simd.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define TRAINCTL_AVX512 gnu::target("avx512f,avx512bw,avx512dq,avx512vl")
#define TRAINCTL_AVX512_BF16 gnu::target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")
#define TRAINCTL_AVX2 gnu::target("avx2,fma")
#endif

namespace trainctl::cpu {
namespace {

constexpr int vector = 16, max_rows = 6, max_vectors = 4;

#if defined(__x86_64__)

template <int rows, int vectors>
[[TRAINCTL_AVX512]] void multiply_avx512(const MatrixProduct& p, std::int64_t row, std::int64_t column,
                                         std::int64_t /*columns*/, std::int64_t first, std::int64_t depth) {
  float* const c = p.c + row * p.c_row + column;
  __m512 sums[rows][vectors] = {};
  if (p.add) {
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) sums[r][v] = _mm512_loadu_ps(c + r * p.c_row + 16 * v);
    }
  }
  const float* left_rows[rows];
  for (int r = 0; r < rows; ++r) left_rows[r] = p.row(row + r) + first * p.a_step;
  const float* b = p.b + first * p.b_step + column;
  for (std::int64_t k = 0; k < depth; ++k, b += p.b_step) {
    __m512 right[vectors];
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) right[v] = _mm512_loadu_ps(b + 16 * v);
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      const __m512 left = _mm512_set1_ps(left_rows[r][k * p.a_step]);
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) sums[r][v] = _mm512_fmadd_ps(left, right[v], sums[r][v]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) _mm512_storeu_ps(c + r * p.c_row + 16 * v, sums[r][v]);
  }
}

// The same product for pairs of bfloat16.
template <int rows, int vectors>
[[TRAINCTL_AVX512_BF16]] void multiply_bf16(const MatrixProduct& p, std::int64_t row, std::int64_t column,
                                            std::int64_t /*columns*/, std::int64_t first, std::int64_t depth) {
  float* const c = p.c + row * p.c_row + column;
  __m512 sums[rows][vectors] = {};
  if (p.add) {
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) sums[r][v] = _mm512_loadu_ps(c + r * p.c_row + 16 * v);
    }
  }
  const float* left_rows[rows];
  for (int r = 0; r < rows; ++r) left_rows[r] = p.row(row + r) + first * p.a_step;
  const float* b = p.b + first * p.b_step + column;
  for (std::int64_t k = 0; k < depth; ++k, b += p.b_step) {
    __m512bh right[vectors];
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) right[v] = (__m512bh)_mm512_loadu_ps(b + 16 * v);
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      const auto left = (__m512bh)_mm512_set1_ps(left_rows[r][k * p.a_step]);
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) sums[r][v] = _mm512_dpbf16_ps(sums[r][v], right[v], left);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) _mm512_storeu_ps(c + r * p.c_row + 16 * v, sums[r][v]);
  }
}

// Multiplies 16 columns of a panel at a time, since their sums fill the registers.
template <int rows>
[[TRAINCTL_AVX2]] void multiply_avx2(const MatrixProduct& p, std::int64_t row, std::int64_t first_column,
                                     std::int64_t columns, std::int64_t first, std::int64_t depth) {
  for (std::int64_t column = first_column; column < first_column + columns; column += 16) {
    float* const c = p.c + row * p.c_row + column;
    __m256 sums[rows][2] = {};
    if (p.add) {
#pragma GCC unroll 8
      for (int r = 0; r < rows; ++r) {
        sums[r][0] = _mm256_loadu_ps(c + r * p.c_row);
        sums[r][1] = _mm256_loadu_ps(c + r * p.c_row + 8);
      }
    }
    const float* left_rows[rows];
    for (int r = 0; r < rows; ++r) left_rows[r] = p.row(row + r) + first * p.a_step;
    const float* b = p.b + first * p.b_step + column;
    for (std::int64_t k = 0; k < depth; ++k, b += p.b_step) {
      const __m256 first = _mm256_loadu_ps(b), second = _mm256_loadu_ps(b + 8);
#pragma GCC unroll 8
      for (int r = 0; r < rows; ++r) {
        const __m256 left = _mm256_set1_ps(left_rows[r][k * p.a_step]);
        sums[r][0] = _mm256_fmadd_ps(left, first, sums[r][0]);
        sums[r][1] = _mm256_fmadd_ps(left, second, sums[r][1]);
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      _mm256_storeu_ps(c + r * p.c_row, sums[r][0]);
      _mm256_storeu_ps(c + r * p.c_row + 8, sums[r][1]);
    }
  }
}

using Function = void (*)(const MatrixProduct& p, std::int64_t row, std::int64_t column, std::int64_t columns,
                          std::int64_t first, std::int64_t depth);
// A part of a product: rows and columns of c, and `depth` terms from `first` on.
struct Tile {
  std::int64_t row, rows, column, columns, first, depth;

  std::size_t vectors() const { return static_cast<std::size_t>(columns / vector); }
  // Calls the function for this number of rows.
  void call(const std::array<Function, max_rows>& functions, const MatrixProduct& product) const {
    functions[static_cast<std::size_t>(rows - 1)](product, row, column, columns, first, depth);
  }
};

using Rows = std::make_integer_sequence<int, max_rows>;

// Functions for 1 to max_rows rows.
template <int vectors, int... rows>
constexpr std::array<Function, max_rows> rows_avx512(std::integer_sequence<int, rows...>) {
  return {&multiply_avx512<rows + 1, vectors>...};
}
template <int vectors, int... rows>
constexpr std::array<Function, max_rows> rows_pairs(std::integer_sequence<int, rows...>) {
  return {&multiply_bf16<rows + 1, vectors>...};
}
template <int... rows>
constexpr std::array<Function, max_rows> rows_avx2(std::integer_sequence<int, rows...>) {
  return {&multiply_avx2<rows + 1>...};
}
constexpr std::array avx512_tiles{rows_avx512<1>(Rows{}), rows_avx512<2>(Rows{}), rows_avx512<3>(Rows{}),
                                  rows_avx512<4>(Rows{})};
constexpr std::array pair_tiles{rows_pairs<1>(Rows{}), rows_pairs<2>(Rows{}), rows_pairs<3>(Rows{}),
                                rows_pairs<4>(Rows{})};
constexpr std::array avx2_tiles = rows_avx2(Rows{});
static_assert(avx512_tiles.size() == max_vectors && pair_tiles.size() == max_vectors);

#endif

// The product for any processor.
void multiply_plain(const MatrixProduct& p, const Tile& tile) {
  for (std::int64_t r = tile.row; r < tile.row + tile.rows; ++r) {
    for (std::int64_t column = tile.column; column < tile.column + tile.columns; column += vector) {
      float* c = p.c + r * p.c_row + column;
      float sums[vector] = {};
      if (p.add) std::copy_n(c, vector, sums);
      for (std::int64_t k = tile.first; k < tile.first + tile.depth; ++k) {
        const float left = p.row(r)[k * p.a_step];
        const float* b = p.b + k * p.b_step + column;
        for (int i = 0; i < vector; ++i) sums[i] += left * b[i];
      }
      std::copy_n(sums, vector, c);
    }
  }
}

void multiply_tile(const MatrixProduct& product, const Tile& tile) {
#if defined(__x86_64__)
  if (instruction_set() == InstructionSet::avx512) return tile.call(avx512_tiles[tile.vectors() - 1], product);
  if (instruction_set() == InstructionSet::avx2) return tile.call(avx2_tiles, product);
#endif
  multiply_plain(product, tile);
}

void multiply_tile_of_pairs([[maybe_unused]] const MatrixProduct& product, [[maybe_unused]] const Tile& tile) {
#if defined(__x86_64__)
  tile.call(pair_tiles[tile.vectors() - 1], product);
#endif
}

// Leaves out of a tile what the bands of the product do not cover. Returns whether anything is left to compute.
template <int values>
TRAINCTL_INLINE inline bool trim(const MatrixProduct& product, Tile& tile) {
  const std::int64_t end_row = tile.row + tile.rows;
  const Band::Columns used = product.of_c.of_rows(tile.row, end_row, tile.column + tile.columns);
  const std::int64_t begin = std::max(tile.column, used.begin / vector * vector);
  if (begin >= used.end) return false;
  tile.column = begin;
  tile.columns = (used.end - begin + vector - 1) / vector * vector;
  const Band::Columns terms = product.of_a.of_rows(tile.row, end_row, tile.depth * values);
  tile.first = std::min(terms.begin / values, tile.depth);
  tile.depth = std::max<std::int64_t>(0, (terms.end + values - 1) / values - tile.first);
  return tile.depth > 0 || !product.add;
}

// Calls multiply(product, tile) for tiles of nearly equal sizes. `values` is the number of values in an element of a
// and of b.
template <int values, class Multiply>
void each_tile_of(const MatrixProduct& product, const Multiply& multiply) {
  const std::int64_t vectors = product.columns / vector, panels = (vectors + max_vectors - 1) / max_vectors;
  const std::int64_t groups = (product.rows + max_rows - 1) / max_rows;
  for (std::int64_t panel = 0; panel < panels; ++panel) {
    const std::int64_t first = vectors * panel / panels * vector, last = vectors * (panel + 1) / panels * vector;
    for (std::int64_t group = 0; group < groups; ++group) {
      const std::int64_t row = product.rows * group / groups, end = product.rows * (group + 1) / groups;
      Tile tile{row, end - row, first, last - first, 0, product.depth};
      if (trim<values>(product, tile)) multiply(product, tile);
    }
  }
}

}  // namespace

bool multiplies_pairs() {
#if defined(__x86_64__)
  return instruction_set() == InstructionSet::avx512 && __builtin_cpu_supports("avx512bf16");
#else
  return false;
#endif
}

void multiply(const MatrixProduct& product) { each_tile_of<1>(product, multiply_tile); }
void multiply_pairs(const MatrixProduct& product) { each_tile_of<2>(product, multiply_tile_of_pairs); }

}  // namespace trainctl::cpu
