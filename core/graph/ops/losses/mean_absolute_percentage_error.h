// The mean absolute percentage error: 100 |x - t| / max(|t|, 1e-7).
#pragma once

#include <array>

#include "core/graph/ops/losses/rule.h"

namespace trainctl {

struct MeanAbsolutePercentageErrorLoss {
  static constexpr const char* name = "mean_absolute_percentage_error";
  static constexpr std::array aliases{"mape", "MAPE"};
  static constexpr const char* meaning =
      "Mean of the absolute differences from target values, in percent of each target value; not for targets near 0.";
  static constexpr LossTargets targets = LossTargets::values;
  static constexpr LossLink link = LossLink::identity;
  static constexpr LossOver over = LossOver::elements;

  template <class Key>
  static void options(const Key&) {}
  Smoothing smoothing(std::int64_t) const { return {}; }
  static double chance(std::int64_t) { return 0; }

  // 100 / max(|t|, 1e-7).
  TRAINCTL_KERNEL_FUNCTION static float percent_of(float t) {
    const float size = t < 0 ? -t : t;
    return 100.0f / (size < 1e-7f ? 1e-7f : size);
  }
  template <class Math>
  TRAINCTL_KERNEL_FUNCTION float element(float x, float t) const {
    const float e = x - t;
    return percent_of(t) * (e < 0 ? -e : e);
  }
  template <class Math>
  TRAINCTL_KERNEL_FUNCTION float slope(float x, float t) const {
    const float e = x - t;
    return percent_of(t) * (e < 0 ? -1.0f : e > 0 ? 1.0f : e);  // keeps NaN
  }
};

}  // namespace trainctl
