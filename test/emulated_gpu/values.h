// Reads and writes values of cuBLASLt's, cuDNN's and NCCL's data types as float.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstddef>
#include <cstdint>

namespace emulated {

enum class Number { f32, bf16, f16, i32, i64, u8 };

inline std::size_t size_of(Number type) {
  return type == Number::i64 ? 8 : type == Number::f32 || type == Number::i32 ? 4 : type == Number::u8 ? 1 : 2;
}

inline float load(const void* memory, Number type, std::int64_t index) {
  switch (type) {
    case Number::bf16:
      return __bfloat162float(static_cast<const __nv_bfloat16*>(memory)[index]);
    case Number::f16:
      return __half2float(static_cast<const __half*>(memory)[index]);
    case Number::i32:
      return static_cast<float>(static_cast<const std::int32_t*>(memory)[index]);
    case Number::i64:
      return static_cast<float>(static_cast<const std::int64_t*>(memory)[index]);
    case Number::u8:
      return static_cast<const std::uint8_t*>(memory)[index];
    default:
      return static_cast<const float*>(memory)[index];
  }
}

inline void store(void* memory, Number type, std::int64_t index, float value) {
  switch (type) {
    case Number::bf16:
      static_cast<__nv_bfloat16*>(memory)[index] = __float2bfloat16_rn(value);
      break;
    case Number::f16:
      static_cast<__half*>(memory)[index] = __float2half_rn(value);
      break;
    case Number::i32:
      static_cast<std::int32_t*>(memory)[index] = static_cast<std::int32_t>(value);
      break;
    case Number::i64:
      static_cast<std::int64_t*>(memory)[index] = static_cast<std::int64_t>(value);
      break;
    case Number::u8:
      static_cast<std::uint8_t*>(memory)[index] = static_cast<std::uint8_t>(value);
      break;
    default:
      static_cast<float*>(memory)[index] = value;
  }
}

// Returns the alignment of an address, at most 256 bytes.
inline std::size_t alignment_of(const void* memory) {
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  return address % 256 == 0 ? 256 : address & (~address + 1);
}

}  // namespace emulated
