// Elementary functions in float32 that the compiler can vectorise. Relative errors are below 3e-7; the absolute error
// of erf_approx() is below 2e-7.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "core/backend/cpu/simd/simd.h"

namespace trainctl::cpu {

// e^x as 2^n e^r with |r| <= ln(2) / 2; saturates at e^-87 and e^88. NaN stays NaN.
TRAINCTL_INLINE inline float exp_approx(float x) {
  x = x < -87.0f ? -87.0f : (x > 88.0f ? 88.0f : x);
  const float shifted = x * 1.44269504f + 12582912.0f;  // 1.5 * 2^23: the low bits now hold n
  const float n = shifted - 12582912.0f;
  const float r = (x - n * 0.693145752f) - n * 1.42860677e-6f;  // ln(2) as the sum of two constants
  float sum = 1.0f / 5040;
  sum = sum * r + 1.0f / 720;
  sum = sum * r + 1.0f / 120;
  sum = sum * r + 1.0f / 24;
  sum = sum * r + 1.0f / 6;
  sum = sum * r + 0.5f;
  sum = sum * r + 1.0f;
  sum = sum * r + 1.0f;
  return sum * std::bit_cast<float>((std::bit_cast<std::uint32_t>(shifted) + 127u) << 23);
}

// The natural logarithm of a positive, normal number x = 2^n m with m in [1 / sqrt(2), sqrt(2)), by the series of
// atanh.
TRAINCTL_INLINE inline float log_approx(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x) - 0x3f3504f3u;  // 1 / sqrt(2)
  const auto n = static_cast<float>(static_cast<std::int32_t>(bits) >> 23);
  const float m = std::bit_cast<float>((bits & 0x007fffffu) + 0x3f3504f3u);
  const float s = (m - 1.0f) / (m + 1.0f), q = s * s;
  const float series = 1.0f + q * (1.0f / 3 + q * (1.0f / 5 + q * (1.0f / 7 + q * (1.0f / 9))));
  return n * 0.693147181f + 2.0f * s * series;
}

TRAINCTL_INLINE inline float sigmoid(float x) { return 1.0f / (1.0f + exp_approx(-x)); }

// tanh(x), by its Taylor series near 0, where 1 - e^-2|x| would cancel.
TRAINCTL_INLINE inline float tanh_approx(float x) {
  const float a = x < 0 ? -x : x;
  const float e = exp_approx(-2.0f * a);
  const float far = (1.0f - e) / (1.0f + e);
  const float s = x * x;
  const float near = a * (1.0f + s * (-1.0f / 3 + s * (2.0f / 15 + s * (-17.0f / 315 + s * (62.0f / 2835)))));
  const float y = a < 0.3f ? near : far;
  return x < 0 ? -y : y;
}

// erf(x), by formula 7.1.26 of Abramowitz and Stegun, Handbook of Mathematical Functions, and e^(-x^2).
struct ErfAndGauss {
  float erf, gauss;
};
TRAINCTL_INLINE inline ErfAndGauss erf_and_gauss(float x) {
  const float a = x < 0 ? -x : x;
  const float t = 1.0f / (1.0f + 0.3275911f * a);
  const float p =
      t * (0.254829592f + t * (-0.284496736f + t * (1.421413741f + t * (-1.453152027f + t * 1.061405429f))));
  const float gauss = exp_approx(-a * a), y = 1.0f - p * gauss;
  return {x < 0 ? -y : y, gauss};
}
TRAINCTL_INLINE inline float erf_approx(float x) { return erf_and_gauss(x).erf; }

// e^x - 1 for x <= 0, by its Taylor series near 0, where the difference would cancel.
TRAINCTL_INLINE inline float expm1_approx(float x) {
  const float near = x * (1.0f + x * (1.0f / 2 + x * (1.0f / 6 + x * (1.0f / 24 + x * (1.0f / 120 + x / 720)))));
  return x > -0.3f ? near : exp_approx(x) - 1.0f;
}

// log(1 + e^x) = max(x, 0) + log(1 + e), e = e^-|x|, by the series of atanh: log(1 + e) = 2 atanh(e / (2 + e)).
TRAINCTL_INLINE inline float softplus_approx(float x) {
  const float e = exp_approx(x < 0 ? x : -x);
  const float s = e / (2.0f + e), q = s * s;
  float sum = 1.0f / 13;
  sum = sum * q + 1.0f / 11;
  sum = sum * q + 1.0f / 9;
  sum = sum * q + 1.0f / 7;
  sum = sum * q + 1.0f / 5;
  sum = sum * q + 1.0f / 3;
  sum = sum * q + 1.0f;
  return (x < 0 ? 0.0f : x) + 2.0f * s * sum;
}

// tanh(log(1 + e^x)) = n / (n + 2) with n = e^x (e^x + 2); the result is 1 from x = 20 on.
TRAINCTL_INLINE inline float tanh_softplus(float x) {
  const float e = exp_approx(x > 20.0f ? 20.0f : x);
  const float n = e * (e + 2.0f);
  return n / (n + 2.0f);
}

TRAINCTL_INLINE inline float relu6_of(float x) { return x < 0 ? 0.0f : x > 6 ? 6.0f : x; }

// The functions that the rules of losses and metrics call (core/graph/ops/losses/rule.h).
struct Math {
  TRAINCTL_INLINE static float sigmoid(float x) { return cpu::sigmoid(x); }
  TRAINCTL_INLINE static float softplus(float x) { return std::log1p(std::exp(x)); }
  TRAINCTL_INLINE static float tanh(float x) { return tanh_approx(x); }
  TRAINCTL_INLINE static float log(float x) { return std::log(x); }
  TRAINCTL_INLINE static float power(float x, float exponent) { return exp_approx(exponent * log_approx(x)); }
};

}  // namespace trainctl::cpu
