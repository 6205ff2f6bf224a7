// Converts rows of tensors to float32 and back, for kernels that compute in float32 for any dtype of the tensors.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "core/backend/cpu/simd/simd.h"

namespace trainctl::cpu {

// Returns the row in float32: the row itself, or its values converted to `scratch`.
template <class T>
TRAINCTL_INLINE inline const float* widened(const T* row, std::int64_t count, float* scratch) {
  if constexpr (std::is_same_v<T, float>) {
    static_cast<void>(count), static_cast<void>(scratch);
    return row;
  } else {
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) scratch[i] = load(row[i]);
    return scratch;
  }
}

template <class T>
TRAINCTL_INLINE inline void store_row(const float* from, std::int64_t count, T* to) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) to[i] = store<T>(from[i]);
}

// Returns load(store<T>(value)), computed with 32-bit operations only.
template <class T>
TRAINCTL_INLINE inline float rounded(float value) {
  if constexpr (std::is_same_v<T, float>) return value;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t nearest = (bits + 0x7fff + ((bits >> 16) & 1)) & 0xffff0000u;
  return (bits & 0x7fffffff) > 0x7f800000 ? value : std::bit_cast<float>(nearest);
}

}  // namespace trainctl::cpu
