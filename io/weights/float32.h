// Numbers of other formats as float32.
#pragma once

#include <cstdint>

#include "core/tensor/dtype.h"

namespace trainctl {

inline bool is_fractional(DType dtype) {
  return dtype != DType::int32 && dtype != DType::int64 && dtype != DType::uint8;
}

// Converts `count` little-endian numbers of a fractional dtype, which need not be aligned.
void to_float32(DType dtype, const void* from, std::int64_t count, float* to);

}  // namespace trainctl
