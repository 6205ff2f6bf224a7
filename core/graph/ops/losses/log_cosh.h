// log cosh(x - t), computed as |e| + softplus(-2 |e|) - log 2 with e = x - t; about e^2 / 2 for small |e|, and |e| -
// log 2 for large |e|.
#pragma once

#include <array>

#include "core/graph/ops/losses/rule.h"

namespace trainctl {

struct LogCosh {
  static constexpr const char* name = "log_cosh";
  static constexpr std::array aliases{"logcosh"};
  static constexpr const char* meaning =
      "Mean of log(cosh(d)) over the differences d from target values: like half the squared difference if d is small, "
      "and like the absolute difference if d is large.";
  static constexpr LossTargets targets = LossTargets::values;
  static constexpr LossLink link = LossLink::identity;
  static constexpr LossOver over = LossOver::elements;

  template <class Key>
  static void options(const Key&) {}
  Smoothing smoothing(std::int64_t) const { return {}; }
  static double chance(std::int64_t) { return 0; }

  template <class Math>
  TRAINCTL_KERNEL_FUNCTION float element(float x, float t) const {
    const float e = x - t, far = e < 0 ? -e : e;
    return far + Math::softplus(-2.0f * far) - 0.693147181f;
  }
  template <class Math>
  TRAINCTL_KERNEL_FUNCTION float slope(float x, float t) const {
    return Math::tanh(x - t);
  }
};

}  // namespace trainctl
