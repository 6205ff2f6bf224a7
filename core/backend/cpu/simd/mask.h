// Masks with a bit for each value: bit k of byte i belongs to value 8 * i + k.
#pragma once

#include "core/backend/cpu/simd/simd.h"

namespace trainctl::cpu {

// Writes for each of `count` values (a multiple of 8) whether it is greater than zero. Runs on the calling thread.
void write_mask(const float* values, std::int64_t count, std::uint8_t* mask);
void write_mask(const Bf16* values, std::int64_t count, std::uint8_t* mask);

// to = from where the bit is set, else 0.
void apply_mask(const float* from, std::int64_t count, const std::uint8_t* mask, float* to);
void apply_mask(const Bf16* from, std::int64_t count, const std::uint8_t* mask, Bf16* to);

}  // namespace trainctl::cpu
