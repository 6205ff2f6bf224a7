// Arithmetic on sizes from a config: counts of elements, bytes, pixels. None of it overflows in silence.
#pragma once

#include <cstdint>
#include <limits>

#include "core/base/error.h"

namespace trainctl {

// A size beyond what 64 bits count. Who knows the layer or the key adds its place.
class OverflowError : public Error {
 public:
  OverflowError();
};

[[noreturn]] void throw_overflow();

constexpr std::int64_t checked_add(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) throw_overflow();
  return sum;
}

constexpr std::int64_t checked_multiply(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) throw_overflow();
  return product;
}

// The product of two numbers from 0, or the largest number there is.
constexpr std::int64_t saturated_multiply(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<std::int64_t>::max() : product;
}

// A number from 0, divided and rounded up.
constexpr std::int64_t divide_up(std::int64_t number, std::int64_t divisor) {
  return number / divisor + (number % divisor != 0 ? 1 : 0);
}

// A number from 0, rounded up to a multiple.
constexpr std::int64_t round_up(std::int64_t number, std::int64_t multiple) {
  return checked_multiply(divide_up(number, multiple), multiple);
}

}  // namespace trainctl
