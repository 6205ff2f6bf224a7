// simd(): compiles the body of a kernel once for each instruction set, and chooses the variant at run time.
//
//   simd([=]() TRAINCTL_INLINE {
//   #pragma omp simd
//     for (std::int64_t i = 0; i < n; ++i) y[i] = store<T>(load(x[i]) * scale);
//   });
//
// The body is inlined into one function per instruction set, where the compiler vectorises its loops. lane_sum() keeps
// its sums in an array of lanes, so that their order does not depend on the instruction set.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "core/backend/cpu/runtime/processor.h"

#define TRAINCTL_INLINE __attribute__((always_inline))

namespace trainctl::cpu {

#if defined(__x86_64__)
template <class Body>
[[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi2,fma,f16c,prefer-vector-width=512"), gnu::noinline]] void
run_avx512(const Body& body) {
  body();
}
template <class Body>
[[gnu::target("avx2,bmi2,fma,f16c"), gnu::noinline]] void run_avx2(const Body& body) {
  body();
}
#endif

// Runs the body compiled for this processor's instruction set. In a build for one instruction set (TRAINCTL_CPU in
// cmake/processor.cmake) it is compiled for that one alone.
template <class Body>
void simd(const Body& body) {
  constexpr auto only = only_instruction_set;
#if defined(__x86_64__)
  if constexpr (!only || only == InstructionSet::avx512) {
    if (only || instruction_set() == InstructionSet::avx512) return run_avx512(body);
  }
  if constexpr (!only || only == InstructionSet::avx2) {
    if (only || instruction_set() == InstructionSet::avx2) return run_avx2(body);
  }
#endif
  if constexpr (!only || only == InstructionSet::baseline) body();
}

// A bfloat16 value in memory.
struct Bf16 {
  std::uint16_t bits;
};

// Converts a value in memory to float32.
TRAINCTL_INLINE inline float load(float value) { return value; }
TRAINCTL_INLINE inline float load(std::uint8_t value) { return static_cast<float>(value); }
TRAINCTL_INLINE inline float load(Bf16 value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
}

// Converts to T, rounding to nearest even; NaN stays NaN.
template <class T>
T store(float value);
template <>
TRAINCTL_INLINE inline float store<float>(float value) {
  return value;
}
template <>
TRAINCTL_INLINE inline Bf16 store<Bf16>(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  const bool nan = (bits & 0x7fffffff) > 0x7f800000;
  return {static_cast<std::uint16_t>(nan ? (bits >> 16) | 0x40 : rounded)};
}

// The number of partial sums of lane_sum().
inline constexpr int lanes = 32;

// Sum over i < n of term(i), in an order that depends on n only. `term` must be inlinable (TRAINCTL_INLINE).
template <class Sum, class Term>
TRAINCTL_INLINE inline Sum lane_sum(std::int64_t n, const Term& term) {
  Sum sums[lanes] = {};
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
#pragma omp simd
    for (int lane = 0; lane < lanes; ++lane) sums[lane] += term(i + lane);
  }
  for (int lane = 0; i + lane < n; ++lane) sums[lane] += term(i + lane);
  for (int width = lanes / 2; width > 0; width /= 2) {
    for (int lane = 0; lane < width; ++lane) sums[lane] += sums[lane + width];
  }
  return sums[0];
}

}  // namespace trainctl::cpu
