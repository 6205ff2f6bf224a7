// The mean squared logarithmic error: (log(1 + x) - log(1 + t))^2, where x and t are at least 1e-7.
#pragma once

#include <array>

#include "core/graph/ops/losses/rule.h"

namespace trainctl {

struct MeanSquaredLogarithmicError {
  static constexpr const char* name = "mean_squared_logarithmic_error";
  static constexpr std::array aliases{"msle", "MSLE"};
  static constexpr const char* meaning =
      "Mean of the squared differences between log(1 + output) and log(1 + target value). Negative outputs and "
      "negative target values count as 0, and a negative output has no gradient.";
  static constexpr LossTargets targets = LossTargets::values;
  static constexpr LossLink link = LossLink::identity;
  static constexpr LossOver over = LossOver::elements;

  template <class Key>
  static void options(const Key&) {}
  Smoothing smoothing(std::int64_t) const { return {}; }
  static double chance(std::int64_t) { return 0; }

  template <class Math>
  TRAINCTL_KERNEL_FUNCTION float element(float x, float t) const {
    const float e = log_of<Math>(x) - log_of<Math>(t);
    return e * e;
  }
  template <class Math>
  TRAINCTL_KERNEL_FUNCTION float slope(float x, float t) const {
    return x < least ? 0.0f : 2.0f * (log_of<Math>(x) - log_of<Math>(t)) / (1.0f + x);
  }

 private:
  static constexpr float least = 1e-7f;

  template <class Math>
  TRAINCTL_KERNEL_FUNCTION static float log_of(float value) {
    return Math::log(1.0f + (value < least ? least : value));  // keeps NaN
  }
};

}  // namespace trainctl
