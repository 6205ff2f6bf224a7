// Products of matrices of a few rows: tiles of sums in registers, for each instruction set.
#include "core/backend/cpu/ops/recurrent_product.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "core/backend/cpu/simd/parallel.h"
#include "core/backend/cpu/simd/simd.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define TRAINCTL_AVX512 gnu::target("avx512f,avx512bw,avx512dq,avx512vl")
#define TRAINCTL_AVX512_BF16 gnu::target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")
#define TRAINCTL_AVX2 gnu::target("avx2,fma")
#endif

namespace trainctl::cpu {
namespace {

constexpr int max_rows = 6, max_vectors = 4;

// A tile of c: a few rows of the `width` columns of a panel. The values of a and b may be pairs of bfloat16.
struct Tile {
  const float *a, *b;
  float* c;
  std::int64_t a_stride, width, c_stride, depth;
};

#if defined(__x86_64__)

template <int rows, int vectors>
[[TRAINCTL_AVX512]] void multiply_avx512(const Tile& t) {
  __m512 sums[rows][vectors] = {};
  const float* b = t.b;
  for (std::int64_t k = 0; k < t.depth; ++k, b += 16 * vectors) {
    __m512 right[vectors];
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) right[v] = _mm512_loadu_ps(b + 16 * v);
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      const __m512 left = _mm512_set1_ps(t.a[r * t.a_stride + k]);
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) sums[r][v] = _mm512_fmadd_ps(left, right[v], sums[r][v]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) _mm512_storeu_ps(t.c + r * t.c_stride + 16 * v, sums[r][v]);
  }
}

// The same product for pairs of bfloat16.
template <int rows, int vectors>
[[TRAINCTL_AVX512_BF16]] void multiply_pairs(const Tile& t) {
  __m512 sums[rows][vectors] = {};
  const float* b = t.b;
  for (std::int64_t k = 0; k < t.depth; ++k, b += 16 * vectors) {
    __m512bh right[vectors];
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) right[v] = (__m512bh)_mm512_loadu_ps(b + 16 * v);
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      const auto left = (__m512bh)_mm512_set1_ps(t.a[r * t.a_stride + k]);
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) sums[r][v] = _mm512_dpbf16_ps(sums[r][v], right[v], left);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) _mm512_storeu_ps(t.c + r * t.c_stride + 16 * v, sums[r][v]);
  }
}

// Multiplies 16 columns of a panel at a time, since their sums fill the registers.
template <int rows>
[[TRAINCTL_AVX2]] void multiply_avx2(const Tile& t) {
  for (std::int64_t column = 0; column < t.width; column += 16) {
    __m256 sums[rows][2] = {};
    const float* b = t.b + column;
    for (std::int64_t k = 0; k < t.depth; ++k, b += t.width) {
      const __m256 first = _mm256_loadu_ps(b), second = _mm256_loadu_ps(b + 8);
#pragma GCC unroll 8
      for (int r = 0; r < rows; ++r) {
        const __m256 left = _mm256_set1_ps(t.a[r * t.a_stride + k]);
        sums[r][0] = _mm256_fmadd_ps(left, first, sums[r][0]);
        sums[r][1] = _mm256_fmadd_ps(left, second, sums[r][1]);
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      _mm256_storeu_ps(t.c + r * t.c_stride + column, sums[r][0]);
      _mm256_storeu_ps(t.c + r * t.c_stride + column + 8, sums[r][1]);
    }
  }
}

using Function = void (*)(const Tile&);
using Rows = std::make_integer_sequence<int, max_rows>;

// Functions for 1 to max_rows rows.
template <int vectors, int... rows>
constexpr std::array<Function, max_rows> rows_avx512(std::integer_sequence<int, rows...>) {
  return {&multiply_avx512<rows + 1, vectors>...};
}
template <int vectors, int... rows>
constexpr std::array<Function, max_rows> rows_pairs(std::integer_sequence<int, rows...>) {
  return {&multiply_pairs<rows + 1, vectors>...};
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
void multiply_plain(std::int64_t rows, const Tile& t) {
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t column = 0; column < t.width; column += 16) {
      float sums[16] = {};
      for (std::int64_t k = 0; k < t.depth; ++k) {
        const float left = t.a[r * t.a_stride + k];
        const float* b = t.b + k * t.width + column;
        for (int i = 0; i < 16; ++i) sums[i] += left * b[i];
      }
      std::copy_n(sums, 16, t.c + r * t.c_stride + column);
    }
  }
}

void multiply(std::int64_t rows, const Tile& tile, bool in_pairs) {
#if defined(__x86_64__)
  const auto row = static_cast<std::size_t>(rows - 1), vectors = static_cast<std::size_t>(tile.width / 16 - 1);
  if (in_pairs) return pair_tiles[vectors][row](tile);
  if (instruction_set() == InstructionSet::avx512) return avx512_tiles[vectors][row](tile);
  if (instruction_set() == InstructionSet::avx2) return avx2_tiles[row](tile);
#else
  static_cast<void>(in_pairs);
#endif
  multiply_plain(rows, tile);
}

bool multiplies_pairs() {
#if defined(__x86_64__)
  return instruction_set() == InstructionSet::avx512 && __builtin_cpu_supports("avx512bf16");
#else
  return false;
#endif
}

// Returns two values, rounded to bfloat16, in 32 bits.
TRAINCTL_INLINE inline float pair_of(float first, float second) {
  const std::uint32_t low = store<Bf16>(first).bits, high = store<Bf16>(second).bits;
  return std::bit_cast<float>(low | high << 16);
}

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace

PackedProduct::PackedProduct(std::int64_t inner, std::int64_t columns, DType dtype)
    : inner_(inner),
      columns_(columns),
      in_pairs_(dtype == DType::bfloat16 && multiplies_pairs()),
      depth_(in_pairs_ ? divide_up(inner, 2) : inner),
      vectors_(divide_up(columns, vector)),
      panels_(divide_up(vectors_, max_vectors)) {}

void PackedProduct::pack(const float* b, std::int64_t inner_step, std::int64_t column_step, float* packed) const {
  const auto value = [=, this](std::int64_t k, std::int64_t column) {
    return k < inner_ && column < columns_ ? b[k * inner_step + column * column_step] : 0.0f;
  };
  parallel_ranges(panels_, std::max<std::int64_t>(1, element_grain / (inner_ * vector * max_vectors)),
                  [=, this](std::int64_t begin, std::int64_t end) {
                    for (std::int64_t panel = begin; panel < end; ++panel) {
                      const std::int64_t first = vectors_ * panel / panels_ * vector,
                                         last = vectors_ * (panel + 1) / panels_ * vector;
                      float* to = packed + first * depth_;
                      for (std::int64_t k = 0; k < depth_; ++k) {
                        for (std::int64_t column = first; column < last; ++column) {
                          *to++ =
                              in_pairs_ ? pair_of(value(2 * k, column), value(2 * k + 1, column)) : value(k, column);
                        }
                      }
                    }
                  });
}

void PackedProduct::run(const float* a, std::int64_t rows, const float* packed, float* scratch, float* c) const {
  if (in_pairs_) {
    for (std::int64_t row = 0; row < rows; ++row) {
      const float* from = a + row * inner_;
      float* to = scratch + row * depth_;
      for (std::int64_t k = 0; k < inner_ / 2; ++k) to[k] = pair_of(from[2 * k], from[2 * k + 1]);
      if (inner_ % 2 != 0) to[depth_ - 1] = pair_of(from[inner_ - 1], 0.0f);
    }
    a = scratch;
  }
  const std::int64_t groups = divide_up(rows, max_rows);
  for (std::int64_t panel = 0; panel < panels_; ++panel) {
    const std::int64_t first = vectors_ * panel / panels_ * vector, last = vectors_ * (panel + 1) / panels_ * vector;
    for (std::int64_t group = 0; group < groups; ++group) {
      const std::int64_t row = rows * group / groups, end = rows * (group + 1) / groups;
      const Tile tile{a + row * depth_,
                      packed + first * depth_,
                      c + row * c_stride() + first,
                      depth_,
                      last - first,
                      c_stride(),
                      depth_};
      multiply(end - row, tile, in_pairs_);
    }
  }
}

}  // namespace trainctl::cpu
