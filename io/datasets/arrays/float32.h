// Converts numbers of other formats to float32, and float32 to bfloat16.
#pragma once

#include <cstdint>

#include "core/tensor/dtype.h"

namespace trainctl {

// Whether values of the dtype may have fractional parts: it is none of the types of whole numbers.
inline bool is_fractional(DType dtype) {
  return dtype != DType::int32 && dtype != DType::int64 && dtype != DType::uint8;
}

// Converts `count` little-endian numbers of a fractional dtype, which need not be aligned.
void to_float32(DType dtype, const void* from, std::int64_t count, float* to);

// Returns the value of a float16 (IEEE 754 binary16) with these bits.
float from_float16(std::uint16_t bits);

// Returns the bits of the nearest bfloat16; ties are rounded to even, and NaN stays NaN.
std::uint16_t to_bfloat16(float value);

}  // namespace trainctl
