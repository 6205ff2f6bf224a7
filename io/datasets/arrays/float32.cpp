// Converts numbers to float32 and bfloat16.
#include "io/datasets/arrays/float32.h"

#include <cstring>

namespace trainctl {
namespace {

float as_float(std::uint32_t bits) {
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

}  // namespace

float from_float16(std::uint16_t bits) {
  const std::uint32_t rest = bits & 0x7FFF;
  float magnitude = static_cast<float>(rest) * 0x1p-24f;                        // below 2^-14
  if (rest >= 0x400) magnitude = as_float((rest << 13) + (112u << 23));         // exponents are 112 apart
  if (rest >= 0x7C00) magnitude = as_float(0x7F800000 | (rest & 0x3FF) << 13);  // Inf, NaN
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

void to_float32(DType dtype, const void* from, std::int64_t count, float* to) {
  const auto convert = [&]<class Number>(Number number, const auto& value) {
    for (std::int64_t i = 0; i < count; ++i) {
      std::memcpy(&number, static_cast<const char*>(from) + i * static_cast<std::int64_t>(sizeof number),
                  sizeof number);
      to[i] = value(number);
    }
  };
  switch (dtype) {
    case DType::float64:
      return convert(double(), [](double value) { return static_cast<float>(value); });
    case DType::bfloat16:
      return convert(std::uint16_t(), [](std::uint16_t bits) { return as_float(std::uint32_t{bits} << 16); });
    case DType::float16:
      return convert(std::uint16_t(), from_float16);
    default:
      std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(float));
  }
}

std::uint16_t to_bfloat16(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  const bool is_nan = (bits & 0x7FFFFFFF) > 0x7F800000;
  return static_cast<std::uint16_t>(is_nan ? bits >> 16 | 0x40 : (bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

}  // namespace trainctl
