// Pairs of bfloat16 in 32 bits, the first in the lower half: the values of multiply_pairs() (product.h).
#pragma once

#include <bit>
#include <cstdint>

#include "core/backend/cpu/simd/simd.h"

namespace trainctl::cpu {

TRAINCTL_INLINE inline float pair_of(Bf16 first, Bf16 second) {
  return std::bit_cast<float>(first.bits | static_cast<std::uint32_t>(second.bits) << 16);
}

// Rounds both values to bfloat16.
TRAINCTL_INLINE inline float pair_of(float first, float second) {
  return pair_of(store<Bf16>(first), store<Bf16>(second));
}

// These functions round a tile of float32 to pairs. The rows of the tile and of the result are `stride` values apart, a
// multiple of 16. `to` may be `from`. The result has whole vectors of 16 pairs. Both require multiplies_pairs().
//
// Pair k of row r holds the values (r, 2 k) and (r, 2 k + 1). After the last column follow zeros.
void pair_columns(const float* from, std::int64_t rows, std::int64_t columns, std::int64_t stride, float* to);
// Pair c of row k holds the values (2 k, c) and (2 k + 1, c). After the last row follow zeros.
void pair_rows(const float* from, std::int64_t rows, std::int64_t columns, std::int64_t stride, float* to);

}  // namespace trainctl::cpu
