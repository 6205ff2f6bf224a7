// The mean absolute error: |x - t|.
#pragma once

#include <array>

#include "core/graph/ops/losses/rule.h"

namespace trainctl {

struct MeanAbsoluteErrorLoss {
  static constexpr const char* name = "mean_absolute_error";
  static constexpr std::array aliases{"mae", "MAE"};
  static constexpr const char* meaning = "Mean of the absolute differences from target values.";
  static constexpr LossTargets targets = LossTargets::values;
  static constexpr LossLink link = LossLink::identity;
  static constexpr LossOver over = LossOver::elements;

  template <class Key>
  static void options(const Key&) {}
  Smoothing smoothing(std::int64_t) const { return {}; }
  static double chance(std::int64_t) { return 0; }

  template <class Math>
  TRAINCTL_KERNEL_FUNCTION float element(float x, float t) const {
    const float e = x - t;
    return e < 0 ? -e : e;
  }
  template <class Math>
  TRAINCTL_KERNEL_FUNCTION float slope(float x, float t) const {
    const float e = x - t;
    return e < 0 ? -1.0f : e > 0 ? 1.0f : e;  // keeps NaN
  }
};

}  // namespace trainctl
