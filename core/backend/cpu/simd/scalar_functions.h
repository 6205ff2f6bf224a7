// The functions of elementwise programs in float32, over a block of values.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/backend/cpu/simd/math.h"
#include "core/expression/elementwise_program.h"

namespace trainctl::cpu {

// e^x with infinity above the range of float32 and 0 below that of normal numbers.
TRAINCTL_INLINE inline float exp_of(float x) {
  const bool large = x > 87.0f;
  const float y = exp_approx(large ? x - 1.0f : x) * (large ? 2.71828183f : 1.0f);
  return x > 88.7f ? std::numeric_limits<float>::infinity() : x < -87.0f ? 0.0f : y;
}

// The logarithm of all numbers: -infinity of 0, and NaN below.
TRAINCTL_INLINE inline float log_of(float x) {
  constexpr float smallest = std::numeric_limits<float>::min();
  const bool small = x < smallest;
  const float y = log_approx(small ? x * 8388608.0f : x) - (small ? 15.9423851f : 0.0f);  // 2^23 and its logarithm
  const float finite = x > std::numeric_limits<float>::max() ? x : y;
  const float positive = x == 0 ? -std::numeric_limits<float>::infinity() : finite;
  return x >= 0 ? positive : std::numeric_limits<float>::quiet_NaN();
}

// e^x - 1, by its Taylor series near 0, where the difference would cancel.
TRAINCTL_INLINE inline float expm1_of(float x) {
  const float near =
      x * (1.0f + x * (1.0f / 2 + x * (1.0f / 6 + x * (1.0f / 24 + x * (1.0f / 120 + x * (1.0f / 720))))));
  return x > -0.3f && x < 0.3f ? near : exp_of(x) - 1.0f;
}

// log(1 + x): the rounding of u = 1 + x is made up for by the factor x / (u - 1).
TRAINCTL_INLINE inline float log1p_of(float x) {
  const float u = 1.0f + x, rounded = u - 1.0f;
  const float y = log_of(u);
  const bool small = rounded == 0, large = u > std::numeric_limits<float>::max() || u <= 0;
  return small ? x : large ? y : y * (x / rounded);
}

// x^e: also for negative x if e is a whole number.
TRAINCTL_INLINE inline float power_of(float x, float e) {
  const float size = exp_of(e * log_of(std::fabs(x)));
  const float half = e * 0.5f;
  const bool whole = std::floor(e) == e, odd = whole && std::floor(half) != half;
  const float negative = whole ? (odd ? -size : size) : std::numeric_limits<float>::quiet_NaN();
  const float y = x < 0 ? negative : size;
  return e == 0 || x == 1 ? 1.0f : y;
}

// The rest of a division, with the sign of the divisor.
TRAINCTL_INLINE inline float mod_of(float a, float b) {
  const float rest = std::fmod(a, b);
  return rest * b < 0 ? rest + b : rest;
}

// The value of a function; operands that it does not have are ignored.
template <ScalarFunction function>
TRAINCTL_INLINE inline float value_of(float a, float b, float c) {
  using enum ScalarFunction;
  const auto truth = [](bool value) TRAINCTL_INLINE { return value ? 1.0f : 0.0f; };
  if constexpr (function == negative) return -a;
  if constexpr (function == ScalarFunction::abs) return std::fabs(a);
  if constexpr (function == sign) return a != a ? a : (a > 0 ? 1.0f : 0.0f) - (a < 0 ? 1.0f : 0.0f);
  if constexpr (function == ScalarFunction::exp) return exp_of(a);
  if constexpr (function == ScalarFunction::expm1) return expm1_of(a);
  if constexpr (function == ScalarFunction::log) return log_of(a);
  if constexpr (function == ScalarFunction::log1p) return log1p_of(a);
  if constexpr (function == ScalarFunction::sqrt) return std::sqrt(a);
  if constexpr (function == rsqrt) return 1.0f / std::sqrt(a);
  if constexpr (function == reciprocal) return 1.0f / a;
  if constexpr (function == ScalarFunction::sin) return std::sin(a);
  if constexpr (function == ScalarFunction::cos) return std::cos(a);
  if constexpr (function == ScalarFunction::tan) return std::tan(a);
  if constexpr (function == arctan) return std::atan(a);
  if constexpr (function == ScalarFunction::tanh) return tanh_approx(a);
  if constexpr (function == ScalarFunction::sigmoid) return cpu::sigmoid(a);
  if constexpr (function == softplus) return softplus_approx(a);
  if constexpr (function == ScalarFunction::erf) return erf_approx(a);
  if constexpr (function == ScalarFunction::floor) return std::floor(a);
  if constexpr (function == ScalarFunction::ceil) return std::ceil(a);
  if constexpr (function == ScalarFunction::round) return std::nearbyint(a);
  if constexpr (function == logical_not) return truth(a == 0);
  if constexpr (function == ScalarFunction::isnan) return truth(a != a);
  if constexpr (function == ScalarFunction::isfinite) return truth(std::fabs(a) <= std::numeric_limits<float>::max());
  if constexpr (function == stop_gradient) return a;
  if constexpr (function == add) return a + b;
  if constexpr (function == subtract) return a - b;
  if constexpr (function == multiply) return a * b;
  if constexpr (function == divide) return a / b;
  if constexpr (function == power) return power_of(a, b);
  if constexpr (function == maximum) return a != a || a >= b ? a : b;
  if constexpr (function == minimum) return a != a || a <= b ? a : b;
  if constexpr (function == mod) return mod_of(a, b);
  if constexpr (function == floor_divide) return std::nearbyint((a - mod_of(a, b)) / b);
  if constexpr (function == ScalarFunction::less) return truth(a < b);
  if constexpr (function == ScalarFunction::less_equal) return truth(a <= b);
  if constexpr (function == equal) return truth(a == b);
  if constexpr (function == not_equal) return truth(a != b);
  if constexpr (function == ScalarFunction::logical_and) return truth(a != 0 && b != 0);
  if constexpr (function == ScalarFunction::logical_or) return truth(a != 0 || b != 0);
  if constexpr (function == logical_xor) return truth((a != 0) != (b != 0));
  if constexpr (function == where) return a != 0 ? b : c;
  return 0;
}

// An operand of a block: value i is values[i & mask]. The mask is -1 for one value after the other, and 0 for
// `constant_values` equal values.
struct BlockOperand {
  const float* values;
  std::int64_t mask;
};
inline constexpr int constant_values = 32;

// y[i] = the function of value i of the operands for i < count, a multiple of `constant_values`; y may be one of the
// operands. run_function() takes any count.
using BlockFunction = void (*)(const BlockOperand* operands, float* y, std::int64_t count);
BlockFunction block_function(ScalarFunction function);

inline constexpr int most_operands = 5;  // of a function
// y[i] = the function of value i of the operands for i < count.
void run_function(BlockFunction function, const BlockOperand* operands, int operand_count, float* y,
                  std::int64_t count);

// erf(x) and e^(-x^2) of the operand x, which need the same exponential. The results may be x.
void erf_and_gauss(const BlockOperand& x, float* erf, float* gauss, std::int64_t count);

}  // namespace trainctl::cpu
