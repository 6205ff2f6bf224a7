// The loss of counts that have a Poisson distribution with the mean x, up to a term of the targets: x - t log(x +
// 1e-7).
#pragma once

#include "core/graph/ops/losses/rule.h"

namespace trainctl {

struct Poisson {
  static constexpr const char* name = "poisson";
  static constexpr const char* meaning =
      "Mean of x - t log(x + 1e-7) over outputs x and target counts t. Outputs must be positive: end the network in an "
      "activation such as softplus.";
  static constexpr LossTargets targets = LossTargets::values;
  static constexpr LossLink link = LossLink::identity;
  static constexpr LossOver over = LossOver::elements;

  template <class Key>
  static void options(const Key&) {}
  Smoothing smoothing(std::int64_t) const { return {}; }
  static double chance(std::int64_t) { return 0; }

  template <class Math>
  TRAINCTL_KERNEL_FUNCTION float element(float x, float t) const {
    return x - t * Math::log(x + 1e-7f);
  }
  template <class Math>
  TRAINCTL_KERNEL_FUNCTION float slope(float x, float t) const {
    return 1.0f - t / (x + 1e-7f);
  }
};

}  // namespace trainctl
