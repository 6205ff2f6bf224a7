// Writes computed values to tensors. Where the processor has an instruction that rounds to bfloat16, values are rounded
// in blocks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "core/backend/cpu/simd/simd.h"

namespace trainctl::cpu {

// Whether the processor has an instruction that rounds to bfloat16.
bool narrows_by_instruction();

// to[i] = values[i], rounded as by store<Bf16>(); denormal numbers may become 0.
void narrow(const float* values, std::int64_t count, Bf16* to);

// to[i] = value(i) for i in [begin, end). `value` must be inlinable (TRAINCTL_INLINE), and value(i) may read element i
// of `to`, but no other one.
template <class T, class Value>
TRAINCTL_INLINE inline void store_each(T* to, std::int64_t begin, std::int64_t end, const Value& value) {
  if constexpr (std::is_same_v<T, float>) {
#pragma omp simd
    for (std::int64_t i = begin; i < end; ++i) to[i] = value(i);
  } else {
    // For few values, a call of narrow() takes more time than its instruction saves.
    constexpr std::int64_t block = 512, least_narrowed = 32;
    if (end - begin < least_narrowed || !narrows_by_instruction()) {
#pragma omp simd
      for (std::int64_t i = begin; i < end; ++i) to[i] = store<T>(value(i));
      return;
    }
    alignas(64) float values[block];
    for (std::int64_t first = begin; first < end; first += block) {
      const std::int64_t count = std::min(block, end - first);
#pragma omp simd
      for (std::int64_t i = 0; i < count; ++i) values[i] = value(first + i);
      narrow(values, count, to + first);
    }
  }
}

}  // namespace trainctl::cpu
