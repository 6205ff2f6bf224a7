// Rounds tiles to pairs of bfloat16 with AVX-512 BF16.
#include "core/backend/cpu/simd/pairs.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <algorithm>

#define TRAINCTL_AVX512_BF16 gnu::target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")

namespace trainctl::cpu {
namespace {

// The mask of the first `count` values of a vector.
__mmask16 first_values(std::int64_t count) {
  return static_cast<__mmask16>((1U << std::clamp<std::int64_t>(count, 0, 16)) - 1);
}

}  // namespace

[[TRAINCTL_AVX512_BF16]] void pair_columns(const float* from, std::int64_t rows, std::int64_t columns,
                                           std::int64_t stride, float* to) {
  for (std::int64_t row = 0; row < rows; ++row) {
    const float* x = from + row * stride;
    float* y = to + row * stride;
    for (std::int64_t i = 0; i < columns; i += 32) {
      const __m512 first = _mm512_maskz_loadu_ps(first_values(columns - i), x + i);
      const __m512 second = _mm512_maskz_loadu_ps(first_values(columns - i - 16), x + i + 16);
      _mm512_storeu_si512(y + i / 2, (__m512i)_mm512_cvtne2ps_pbh(second, first));
    }
  }
}

[[TRAINCTL_AVX512_BF16]] void pair_rows(const float* from, std::int64_t rows, std::int64_t columns, std::int64_t stride,
                                        float* to) {
  // Takes the values 0 to 15 and 16 to 31 in turn.
  const __m512i in_turn = _mm512_or_si512(
      _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0),
      _mm512_slli_epi32(_mm512_set_epi32(31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16), 16));
  for (std::int64_t k = 0; 2 * k < rows; ++k) {
    const float *even = from + 2 * k * stride, *odd = even + stride;
    const bool has_odd = 2 * k + 1 < rows;
    float* y = to + k * stride;
    for (std::int64_t i = 0; i < columns; i += 16) {
      const __m512 first = _mm512_loadu_ps(even + i);
      const __m512 second = has_odd ? _mm512_loadu_ps(odd + i) : _mm512_setzero_ps();
      const auto rounded = (__m512i)_mm512_cvtne2ps_pbh(second, first);
      _mm512_storeu_si512(y + i, _mm512_permutexvar_epi16(in_turn, rounded));
    }
  }
}

}  // namespace trainctl::cpu

#else

namespace trainctl::cpu {

void pair_columns(const float*, std::int64_t, std::int64_t, std::int64_t, float*) {}
void pair_rows(const float*, std::int64_t, std::int64_t, std::int64_t, float*) {}

}  // namespace trainctl::cpu

#endif
