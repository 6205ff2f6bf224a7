// Huber's loss (1964): half the squared error up to delta, linear beyond delta:
// |e| <= delta ? e^2 / 2 : delta (|e| - delta / 2), with e = x - t.
#pragma once

#include "core/graph/ops/losses/rule.h"

namespace trainctl {

struct Huber {
  float delta = 1;

  static constexpr const char* name = "huber";
  static constexpr const char* meaning =
      "Mean of half the squared differences from target values; linear in differences larger than delta.";
  static constexpr LossTargets targets = LossTargets::values;
  static constexpr LossLink link = LossLink::identity;
  static constexpr LossOver over = LossOver::elements;

  template <class Key>
  static void options(const Key& key) {
    key("delta", &Huber::delta, "The difference above which the loss is linear.", more_than(0));
  }
  Smoothing smoothing(std::int64_t) const { return {}; }
  static double chance(std::int64_t) { return 0; }

  template <class Math>
  TRAINCTL_KERNEL_FUNCTION float element(float x, float t) const {
    const float e = x - t, far = e < 0 ? -e : e;
    return far <= delta ? 0.5f * e * e : delta * (far - 0.5f * delta);
  }
  template <class Math>
  TRAINCTL_KERNEL_FUNCTION float slope(float x, float t) const {
    const float e = x - t;
    return e < -delta ? -delta : e > delta ? delta : e;
  }
};

}  // namespace trainctl
