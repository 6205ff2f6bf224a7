// Fills memory with random values of any dtype.
#include "core/tensor/random_values.h"

#include <cstring>

#include "core/base/random.h"

namespace trainctl {
namespace {

constexpr std::int64_t words_per_block = 4;

// The random word of an element.
std::uint32_t word_at(std::uint64_t key, std::int64_t element) {
  const auto at = static_cast<std::uint64_t>(element);
  const PhiloxBlock block = philox(
      {static_cast<std::uint32_t>(at / words_per_block), static_cast<std::uint32_t>(at / words_per_block >> 32), 0, 0},
      {static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32)});
  return block[at % words_per_block];
}

template <class T, class Value>
void fill(View data, std::uint64_t key, Value value) {
  for (std::int64_t i = 0; i < data.count; ++i) data.as<T>()[i] = static_cast<T>(value(word_at(key, i)));
}

float number(std::uint32_t word) { return 2 * uniform01(word) - 1; }

// The bfloat16 of a random number: the upper half of its float32.
std::uint16_t bfloat16_bits(std::uint32_t word) {
  const float value = number(word);
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return static_cast<std::uint16_t>(bits >> 16);
}

// A float16 whose absolute value is in [1/2, 1): a random sign, the exponent 14 and ten random bits.
std::uint16_t float16_bits(std::uint32_t word) {
  return static_cast<std::uint16_t>((word >> 16 & 0x8000) | 14u << 10 | (word & 0x3ff));
}

}  // namespace

void fill_random(View data, std::uint64_t key, std::int64_t below) {
  const auto whole = [below](std::uint32_t word) { return static_cast<std::int64_t>(word) % below; };
  switch (data.dtype) {
    case DType::float32:
      return fill<float>(data, key, number);
    case DType::float64:
      return fill<double>(data, key, number);
    case DType::bfloat16:
      return fill<std::uint16_t>(data, key, bfloat16_bits);
    case DType::float16:
      return fill<std::uint16_t>(data, key, float16_bits);
    case DType::int32:
      return fill<std::int32_t>(data, key, whole);
    case DType::int64:
      return fill<std::int64_t>(data, key, whole);
    case DType::uint8:
      return fill<std::uint8_t>(data, key, whole);
  }
}

}  // namespace trainctl
