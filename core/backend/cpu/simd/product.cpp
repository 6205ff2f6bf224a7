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
[[TRAINCTL_AVX512]] void multiply_avx512(const MatrixProduct& t) {
  __m512 sums[rows][vectors] = {};
  if (t.add) {
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) sums[r][v] = _mm512_loadu_ps(t.c + r * t.c_row + 16 * v);
    }
  }
  const float* left_rows[rows];
  for (int r = 0; r < rows; ++r) left_rows[r] = t.row(r);
  const float* b = t.b;
  for (std::int64_t k = 0; k < t.depth; ++k, b += t.b_step) {
    __m512 right[vectors];
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) right[v] = _mm512_loadu_ps(b + 16 * v);
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      const __m512 left = _mm512_set1_ps(left_rows[r][k * t.a_step]);
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) sums[r][v] = _mm512_fmadd_ps(left, right[v], sums[r][v]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) _mm512_storeu_ps(t.c + r * t.c_row + 16 * v, sums[r][v]);
  }
}

// The same product for pairs of bfloat16.
template <int rows, int vectors>
[[TRAINCTL_AVX512_BF16]] void multiply_bf16(const MatrixProduct& t) {
  __m512 sums[rows][vectors] = {};
  if (t.add) {
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) sums[r][v] = _mm512_loadu_ps(t.c + r * t.c_row + 16 * v);
    }
  }
  const float* left_rows[rows];
  for (int r = 0; r < rows; ++r) left_rows[r] = t.row(r);
  const float* b = t.b;
  for (std::int64_t k = 0; k < t.depth; ++k, b += t.b_step) {
    __m512bh right[vectors];
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) right[v] = (__m512bh)_mm512_loadu_ps(b + 16 * v);
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      const auto left = (__m512bh)_mm512_set1_ps(left_rows[r][k * t.a_step]);
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) sums[r][v] = _mm512_dpbf16_ps(sums[r][v], right[v], left);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) _mm512_storeu_ps(t.c + r * t.c_row + 16 * v, sums[r][v]);
  }
}

// Multiplies 16 columns of a panel at a time, since their sums fill the registers.
template <int rows>
[[TRAINCTL_AVX2]] void multiply_avx2(const MatrixProduct& t) {
  for (std::int64_t column = 0; column < t.columns; column += 16) {
    __m256 sums[rows][2] = {};
    if (t.add) {
#pragma GCC unroll 8
      for (int r = 0; r < rows; ++r) {
        sums[r][0] = _mm256_loadu_ps(t.c + r * t.c_row + column);
        sums[r][1] = _mm256_loadu_ps(t.c + r * t.c_row + column + 8);
      }
    }
    const float* left_rows[rows];
    for (int r = 0; r < rows; ++r) left_rows[r] = t.row(r);
    const float* b = t.b + column;
    for (std::int64_t k = 0; k < t.depth; ++k, b += t.b_step) {
      const __m256 first = _mm256_loadu_ps(b), second = _mm256_loadu_ps(b + 8);
#pragma GCC unroll 8
      for (int r = 0; r < rows; ++r) {
        const __m256 left = _mm256_set1_ps(left_rows[r][k * t.a_step]);
        sums[r][0] = _mm256_fmadd_ps(left, first, sums[r][0]);
        sums[r][1] = _mm256_fmadd_ps(left, second, sums[r][1]);
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      _mm256_storeu_ps(t.c + r * t.c_row + column, sums[r][0]);
      _mm256_storeu_ps(t.c + r * t.c_row + column + 8, sums[r][1]);
    }
  }
}

using Function = void (*)(const MatrixProduct&);
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
void multiply_plain(const MatrixProduct& t) {
  for (std::int64_t r = 0; r < t.rows; ++r) {
    for (std::int64_t column = 0; column < t.columns; column += vector) {
      float* c = t.c + r * t.c_row + column;
      float sums[vector] = {};
      if (t.add) std::copy_n(c, vector, sums);
      for (std::int64_t k = 0; k < t.depth; ++k) {
        const float left = t.row(r)[k * t.a_step];
        const float* b = t.b + k * t.b_step + column;
        for (int i = 0; i < vector; ++i) sums[i] += left * b[i];
      }
      std::copy_n(sums, vector, c);
    }
  }
}

void multiply_tile(const MatrixProduct& tile) {
#if defined(__x86_64__)
  const auto row = static_cast<std::size_t>(tile.rows - 1),
             vectors = static_cast<std::size_t>(tile.columns / vector - 1);
  if (instruction_set() == InstructionSet::avx512) return avx512_tiles[vectors][row](tile);
  if (instruction_set() == InstructionSet::avx2) return avx2_tiles[row](tile);
#endif
  multiply_plain(tile);
}

void multiply_tile_of_pairs([[maybe_unused]] const MatrixProduct& tile) {
#if defined(__x86_64__)
  pair_tiles[static_cast<std::size_t>(tile.columns / vector - 1)][static_cast<std::size_t>(tile.rows - 1)](tile);
#endif
}

// Calls multiply for tiles of nearly equal sizes.
template <class Multiply>
void each_tile_of(const MatrixProduct& product, const Multiply& multiply) {
  const std::int64_t vectors = product.columns / vector, panels = (vectors + max_vectors - 1) / max_vectors;
  const std::int64_t groups = (product.rows + max_rows - 1) / max_rows;
  for (std::int64_t panel = 0; panel < panels; ++panel) {
    const std::int64_t first = vectors * panel / panels * vector, last = vectors * (panel + 1) / panels * vector;
    for (std::int64_t group = 0; group < groups; ++group) {
      const std::int64_t row = product.rows * group / groups, end = product.rows * (group + 1) / groups;
      MatrixProduct tile = product;
      if (product.a_rows != nullptr) {
        tile.a_rows += row;
      } else {
        tile.a += row * product.a_row;
      }
      tile.b += first;
      tile.c += row * product.c_row + first;
      tile.rows = end - row;
      tile.columns = last - first;
      multiply(tile);
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

void multiply(const MatrixProduct& product) { each_tile_of(product, multiply_tile); }
void multiply_pairs(const MatrixProduct& product) { each_tile_of(product, multiply_tile_of_pairs); }

}  // namespace trainctl::cpu
