// The square of the hinge loss of yes-or-no answers: max(0, 1 - s x)^2, where s is 1 for yes and -1 for no.
#pragma once

#include "core/graph/ops/losses/hinge.h"

namespace trainctl {

struct SquaredHinge {
  static constexpr const char* name = "squared_hinge";
  static constexpr const char* meaning =
      "Mean of the squares of hinge's values. Targets are 1 for yes, and 0 or -1 for no, as for hinge.";
  static constexpr LossTargets targets = LossTargets::labels;
  static constexpr LossLink link = LossLink::identity;
  static constexpr LossOver over = LossOver::elements;

  template <class Key>
  static void options(const Key&) {}
  Smoothing smoothing(std::int64_t) const { return {}; }
  static double chance(std::int64_t) { return 0; }

  template <class Math>
  TRAINCTL_KERNEL_FUNCTION float element(float x, float t) const {
    return Hinge::shortfall(x, t) * Hinge::shortfall(x, t);
  }
  template <class Math>
  TRAINCTL_KERNEL_FUNCTION float slope(float x, float t) const {
    return -2.0f * Hinge::signed_target(t) * Hinge::shortfall(x, t);
  }
};

}  // namespace trainctl
