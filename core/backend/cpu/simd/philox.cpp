// Philox for many blocks at once. The instruction that multiplies 32-bit numbers into 64 bits takes the lower half of
// each 64-bit lane and ignores the upper half. With AVX-512, the counters' words are therefore kept in 64-bit lanes
// whose upper halves hold anything, and no round has to separate or join halves.
#include "core/backend/cpu/simd/philox.h"

#include "core/backend/cpu/simd/simd.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace trainctl::cpu {
namespace {

constexpr std::uint32_t multipliers[] = {0xD2511F53, 0xCD9E8D57}, key_steps[] = {0x9E3779B9, 0xBB67AE85};
constexpr int rounds = 10;

#if defined(__x86_64__)

constexpr int vector_blocks = 8, vectors = drawn_blocks / vector_blocks;
constexpr __mmask8 all = 0xFF;  // the functions without a mask cause wrong warnings in gcc 12

[[gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]] void draw_avx512(const PhiloxBlock& start, std::uint32_t low,
                                                                       std::uint32_t high, std::uint32_t* words) {
  const __m512i by0 = _mm512_set1_epi64(multipliers[0]), by1 = _mm512_set1_epi64(multipliers[1]);
  __m512i c0[vectors], c1[vectors], c2[vectors], c3[vectors];
  for (int v = 0; v < vectors; ++v) {
    c0[v] = _mm512_set1_epi64(start[0]);
    c1[v] = _mm512_set1_epi64(start[1]);
    c2[v] =
        _mm512_add_epi64(_mm512_set1_epi64(start[2] + vector_blocks * v), _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7));
    c3[v] = _mm512_set1_epi64(start[3]);
  }
#pragma GCC unroll 10
  for (int round = 0; round < rounds; ++round, low += key_steps[0], high += key_steps[1]) {
    constexpr int exclusive_or = 0x96;  // of three operands
    const __m512i k0 = _mm512_set1_epi64(low), k1 = _mm512_set1_epi64(high);
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) {
      const __m512i p0 = _mm512_maskz_mul_epu32(all, c0[v], by0), p1 = _mm512_maskz_mul_epu32(all, c2[v], by1);
      c0[v] = _mm512_ternarylogic_epi64(_mm512_maskz_srli_epi64(all, p1, 32), c1[v], k0, exclusive_or);
      c1[v] = p1;
      c2[v] = _mm512_ternarylogic_epi64(_mm512_maskz_srli_epi64(all, p0, 32), c3[v], k1, exclusive_or);
      c3[v] = p0;
    }
  }
  for (int v = 0; v < vectors; ++v, words += 4 * vector_blocks) {
    constexpr __mmask16 upper_halves = 0xAAAA;
    const __m512i first = _mm512_mask_blend_epi32(upper_halves, c0[v], _mm512_maskz_slli_epi64(all, c1[v], 32));
    const __m512i second = _mm512_mask_blend_epi32(upper_halves, c2[v], _mm512_maskz_slli_epi64(all, c3[v], 32));
    const __m512i blocks0 = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11),
                  blocks4 = _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15);
    _mm512_storeu_si512(words, _mm512_permutex2var_epi64(first, blocks0, second));
    _mm512_storeu_si512(words + 2 * vector_blocks, _mm512_permutex2var_epi64(first, blocks4, second));
  }
}

#endif

}  // namespace

void draw_words(const RandomKey& key, std::uint64_t sample, std::uint32_t index, std::uint32_t* words) {
  const PhiloxBlock start = key.counter(sample, index);
  const auto low = static_cast<std::uint32_t>(key.seed), high = static_cast<std::uint32_t>(key.seed >> 32);
#if defined(__x86_64__)
  if (instruction_set() == InstructionSet::avx512) return draw_avx512(start, low, high, words);
#endif
  simd([=]() TRAINCTL_INLINE {
    std::uint32_t drawn[4][drawn_blocks];
#pragma omp simd
    for (int b = 0; b < drawn_blocks; ++b) {
      std::uint32_t c0 = start[0], c1 = start[1], c2 = start[2] + static_cast<std::uint32_t>(b), c3 = start[3];
      std::uint32_t k0 = low, k1 = high;
#pragma GCC unroll 10
      for (int round = 0; round < rounds; ++round, k0 += key_steps[0], k1 += key_steps[1]) {
        const std::uint64_t p0 = std::uint64_t{multipliers[0]} * c0, p1 = std::uint64_t{multipliers[1]} * c2;
        c0 = static_cast<std::uint32_t>(p1 >> 32) ^ c1 ^ k0;
        c1 = static_cast<std::uint32_t>(p1);
        c2 = static_cast<std::uint32_t>(p0 >> 32) ^ c3 ^ k1;
        c3 = static_cast<std::uint32_t>(p0);
      }
      drawn[0][b] = c0;
      drawn[1][b] = c1;
      drawn[2][b] = c2;
      drawn[3][b] = c3;
    }
    for (int b = 0; b < drawn_blocks; ++b) {
      for (int word = 0; word < 4; ++word) words[4 * b + word] = drawn[word][b];
    }
  });
}

}  // namespace trainctl::cpu
