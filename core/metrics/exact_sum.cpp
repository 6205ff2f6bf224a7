// Adds mantissas at the positions given by their exponents.
#include "core/metrics/exact_sum.h"

#include <bit>
#include <cmath>
#include <limits>

namespace trainctl {
namespace {

constexpr int limb_bits = 32;
constexpr std::int64_t limb_mask = 0xFFFFFFFF;
constexpr int lowest_exponent = -149;  // exponent of the smallest float32 value

}  // namespace

void ExactSum::add(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t exponent = (bits >> 23) & 0xFF, fraction = bits & 0x7FFFFF;
  if (exponent == 0xFF) {
    ++words_[limbs];
    return;
  }
  const std::uint64_t mantissa = exponent == 0 ? fraction : fraction | 0x800000;
  const std::uint32_t shift = exponent == 0 ? 0 : exponent - 1;  // position of the lowest bit; 0 is 2^-149
  const std::size_t limb = shift / limb_bits;
  const std::uint64_t shifted = mantissa << (shift % limb_bits);
  const std::int64_t sign = (bits >> 31) != 0 ? -1 : 1;
  words_[limb] += sign * static_cast<std::int64_t>(shifted & limb_mask);
  words_[limb + 1] += sign * static_cast<std::int64_t>(shifted >> limb_bits);
}

double ExactSum::value() const {
  if (words_[limbs] != 0) return std::numeric_limits<double>::quiet_NaN();
  // Carries make all limbs but the last one positive; a negative sum is computed from the negated limbs.
  const auto carried = [](Words words) {
    for (std::size_t i = 0; i + 1 < limbs; ++i) {
      words[i + 1] += words[i] >> limb_bits;
      words[i] &= limb_mask;
    }
    return words;
  };
  Words words = carried(words_);
  const bool negative = words[limbs - 1] < 0;
  if (negative) {
    for (std::int64_t& word : words) word = -word;
    words = carried(words);
  }
  double sum = 0;
  for (int i = limbs - 1; i >= 0; --i) {
    sum += std::ldexp(static_cast<double>(words[static_cast<std::size_t>(i)]), lowest_exponent + limb_bits * i);
  }
  return negative ? -sum : sum;
}

}  // namespace trainctl
