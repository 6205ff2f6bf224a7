// Rounds float32 to bfloat16.
#include "core/backend/cpu/simd/narrowing.h"

#include "core/backend/cpu/simd/product.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define TRAINCTL_AVX512_BF16 gnu::target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")
#endif

namespace trainctl::cpu {
namespace {

#if defined(__x86_64__)

[[TRAINCTL_AVX512_BF16]] void narrow_by_instruction(const float* values, std::int64_t count, Bf16* to) {
  std::int64_t i = 0;
  for (; i + 32 <= count; i += 32) {
    const __m512 first = _mm512_loadu_ps(values + i), second = _mm512_loadu_ps(values + i + 16);
    _mm512_storeu_si512(to + i, (__m512i)_mm512_cvtne2ps_pbh(second, first));
  }
  for (; i < count; i += 16) {
    const auto mask = static_cast<__mmask16>((1U << std::min<std::int64_t>(16, count - i)) - 1);
    const auto rounded = (__m256i)_mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(mask, values + i));
    _mm256_mask_storeu_epi16(to + i, mask, rounded);
  }
}

#endif

}  // namespace

bool narrows_by_instruction() {
  static const bool by_instruction = multiplies_pairs();
  return by_instruction;
}

void narrow(const float* values, std::int64_t count, Bf16* to) {
#if defined(__x86_64__)
  if (narrows_by_instruction()) return narrow_by_instruction(values, count, to);
#endif
  simd([=]() TRAINCTL_INLINE {
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) to[i] = store<Bf16>(values[i]);
  });
}

}  // namespace trainctl::cpu
