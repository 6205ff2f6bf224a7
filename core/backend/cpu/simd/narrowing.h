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

// to[i] = value(i, c) for the elements i = row * columns + c of the rows [begin, end). `value` as in store_each().
template <class T, class Value>
TRAINCTL_INLINE inline void store_rows(T* to, std::int64_t begin, std::int64_t end, std::int64_t columns,
                                       const Value& value) {
  if (std::is_same_v<T, float> || !narrows_by_instruction()) {
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t first = row * columns;
#pragma omp simd
      for (std::int64_t c = 0; c < columns; ++c) to[first + c] = store<T>(value(first + c, c));
    }
    return;
  }
  if constexpr (!std::is_same_v<T, float>) {
    constexpr std::int64_t block = 512;
    alignas(64) float values[block];
    const std::int64_t width = std::min(block, columns), most_rows = block / width;
    for (std::int64_t row = begin; row < end; row += most_rows) {
      const std::int64_t rows = std::min(most_rows, end - row);
      for (std::int64_t column = 0; column < columns; column += width) {
        const std::int64_t count = std::min(width, columns - column);
        for (std::int64_t r = 0; r < rows; ++r) {
          const std::int64_t first = (row + r) * columns + column;
          float* const results = values + r * count;
#pragma omp simd
          for (std::int64_t c = 0; c < count; ++c) results[c] = value(first + c, column + c);
        }
        narrow(values, rows * count, to + row * columns + column);
      }
    }
  }
}

}  // namespace trainctl::cpu
