// The hinge loss of yes-or-no answers: max(0, 1 - s x), where s is 1 for the answer yes and -1 for the answer no.
#pragma once

#include "core/graph/ops/losses/rule.h"

namespace trainctl {

struct Hinge {
  static constexpr const char* name = "hinge";
  static constexpr const char* meaning =
      "Mean of how much outputs fall short of 1 for the answer yes, or exceed -1 for the answer no. Targets are 1 for "
      "yes, and 0 or -1 for no: a target of 0 counts as -1, and any other target is used as it is.";
  static constexpr LossTargets targets = LossTargets::labels;
  static constexpr LossLink link = LossLink::identity;
  static constexpr LossOver over = LossOver::elements;

  template <class Key>
  static void options(const Key&) {}
  Smoothing smoothing(std::int64_t) const { return {}; }
  static double chance(std::int64_t) { return 0; }

  // The target as 1 or -1. Keras converts targets only if all targets of a batch are 0 or 1. This rule returns the same
  // for targets of 0 and 1, and for targets of -1 and 1.
  TRAINCTL_KERNEL_FUNCTION static float signed_target(float t) { return t == 0 ? -1.0f : t; }
  // 1 - s x; 0 if it is negative.
  TRAINCTL_KERNEL_FUNCTION static float shortfall(float x, float t) {
    const float margin = 1.0f - signed_target(t) * x;
    return margin < 0 ? 0.0f : margin;  // keeps NaN
  }
  template <class Math>
  TRAINCTL_KERNEL_FUNCTION float element(float x, float t) const {
    return shortfall(x, t);
  }
  template <class Math>
  TRAINCTL_KERNEL_FUNCTION float slope(float x, float t) const {
    return shortfall(x, t) == 0 ? 0.0f : -signed_target(t);
  }
};

}  // namespace trainctl
