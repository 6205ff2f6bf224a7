// Masks with a bit for each value. AVX-512 has instructions that compare values into such bits and that move values by
// them; compilers do not use these instructions for a loop.
#include "core/backend/cpu/simd/mask.h"

#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#define TRAINCTL_AVX512 gnu::target("avx512f,avx512bw,avx512dq,avx512vl")
#endif

namespace trainctl::cpu {
namespace {

bool is_positive(float value) { return value > 0; }
bool is_positive(Bf16 value) { return load(value) > 0; }

template <class T>
void write_bytes(const T* values, std::int64_t begin, std::int64_t count, std::uint8_t* mask) {
  for (std::int64_t i = begin; i < count; i += 8) {
    unsigned bits = 0;
    for (int k = 0; k < 8; ++k) bits |= is_positive(values[i + k]) ? 1u << k : 0u;
    mask[i / 8] = static_cast<std::uint8_t>(bits);
  }
}

TRAINCTL_INLINE inline float keep_if(unsigned bit, float value) {
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) & (0 - bit));
}
TRAINCTL_INLINE inline Bf16 keep_if(unsigned bit, Bf16 value) {
  return {static_cast<std::uint16_t>(value.bits & static_cast<std::uint16_t>(0 - bit))};
}

template <class T>
void apply_bytes(const T* from, std::int64_t begin, std::int64_t count, const std::uint8_t* mask, T* to) {
  simd([=]() TRAINCTL_INLINE {
    for (std::int64_t i = begin; i < count; i += 8) {
      const unsigned bits = mask[i / 8];
#pragma omp simd
      for (int k = 0; k < 8; ++k) to[i + k] = keep_if(bits >> k & 1u, from[i + k]);
    }
  });
}

#if defined(__x86_64__)

// These functions handle the leading values, 16 or 32 at a time, and return the number of values that they handled.
[[TRAINCTL_AVX512]] std::int64_t write_vectors(const float* values, std::int64_t count, std::uint8_t* mask) {
  std::int64_t i = 0;
  for (; i + 16 <= count; i += 16) {
    const __mmask16 bits = _mm512_cmp_ps_mask(_mm512_loadu_ps(values + i), _mm512_setzero_ps(), _CMP_GT_OQ);
    std::memcpy(mask + i / 8, &bits, sizeof bits);
  }
  return i;
}
[[TRAINCTL_AVX512]] std::int64_t write_vectors(const Bf16* values, std::int64_t count, std::uint8_t* mask) {
  const __m512i zero = _mm512_setzero_si512(), infinity = _mm512_set1_epi16(0x7f80);
  std::int64_t i = 0;
  for (; i + 32 <= count; i += 32) {
    const __m512i vector = _mm512_loadu_si512(values + i);
    const __mmask32 bits = _mm512_mask_cmple_epi16_mask(_mm512_cmpgt_epi16_mask(vector, zero), vector, infinity);
    std::memcpy(mask + i / 8, &bits, sizeof bits);
  }
  return i;
}
[[TRAINCTL_AVX512]] std::int64_t apply_vectors(const float* from, std::int64_t count, const std::uint8_t* mask,
                                               float* to) {
  std::int64_t i = 0;
  for (; i + 16 <= count; i += 16) {
    __mmask16 bits;
    std::memcpy(&bits, mask + i / 8, sizeof bits);
    _mm512_storeu_ps(to + i, _mm512_maskz_loadu_ps(bits, from + i));
  }
  return i;
}
[[TRAINCTL_AVX512]] std::int64_t apply_vectors(const Bf16* from, std::int64_t count, const std::uint8_t* mask,
                                               Bf16* to) {
  std::int64_t i = 0;
  for (; i + 32 <= count; i += 32) {
    __mmask32 bits;
    std::memcpy(&bits, mask + i / 8, sizeof bits);
    _mm512_storeu_si512(to + i, _mm512_maskz_loadu_epi16(bits, from + i));
  }
  return i;
}

#else

template <class T>
std::int64_t write_vectors(const T*, std::int64_t, std::uint8_t*) {
  return 0;
}
template <class T>
std::int64_t apply_vectors(const T*, std::int64_t, const std::uint8_t*, T*) {
  return 0;
}

#endif

template <class T>
void write(const T* values, std::int64_t count, std::uint8_t* mask) {
  const bool vectors = instruction_set() == InstructionSet::avx512;
  write_bytes(values, vectors ? write_vectors(values, count, mask) : 0, count, mask);
}
template <class T>
void apply(const T* from, std::int64_t count, const std::uint8_t* mask, T* to) {
  const bool vectors = instruction_set() == InstructionSet::avx512;
  apply_bytes(from, vectors ? apply_vectors(from, count, mask, to) : 0, count, mask, to);
}

}  // namespace

void write_mask(const float* values, std::int64_t count, std::uint8_t* mask) { write(values, count, mask); }
void write_mask(const Bf16* values, std::int64_t count, std::uint8_t* mask) { write(values, count, mask); }
void apply_mask(const float* from, std::int64_t count, const std::uint8_t* mask, float* to) {
  apply(from, count, mask, to);
}
void apply_mask(const Bf16* from, std::int64_t count, const std::uint8_t* mask, Bf16* to) {
  apply(from, count, mask, to);
}

}  // namespace trainctl::cpu
