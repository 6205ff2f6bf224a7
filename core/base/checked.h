// Arithmetic on sizes from a config (counts of elements, bytes, pixels): an overflow throws OverflowError or saturates.
#pragma once

#include <cstdint>
#include <limits>

#include "core/base/error.h"

namespace trainctl {

// Thrown if a size does not fit into 64 bits. A caller that knows the layer or the key adds its location to the
// message.
class OverflowError : public Error {
 public:
  OverflowError();
};

// Throws OverflowError.
[[noreturn]] void throw_overflow();

// The sum of two numbers. Throws OverflowError if it exceeds 64 bits.
constexpr std::int64_t checked_add(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) throw_overflow();
  return sum;
}

// The product of two numbers. Throws OverflowError if it exceeds 64 bits.
constexpr std::int64_t checked_multiply(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) throw_overflow();
  return product;
}

// The product of two non-negative numbers, or the largest int64 if the product overflows.
constexpr std::int64_t saturated_multiply(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<std::int64_t>::max() : product;
}

// The quotient of a non-negative number and a positive divisor, rounded up.
constexpr std::int64_t divide_up(std::int64_t number, std::int64_t divisor) {
  return number / divisor + (number % divisor != 0 ? 1 : 0);
}

// A non-negative number, rounded up to a multiple of `multiple`. Throws OverflowError if the result exceeds 64 bits.
constexpr std::int64_t round_up(std::int64_t number, std::int64_t multiple) {
  return checked_multiply(divide_up(number, multiple), multiple);
}

}  // namespace trainctl
