// Cross-entropy of the sigmoid of each logit: max(x, 0) - x t + log(1 + e^-|x|).
#pragma once

#include <array>

#include "core/graph/ops/losses/rule.h"

namespace trainctl {

struct BinaryCrossentropy {
  float label_smoothing = 0;

  static constexpr const char* name = "binary_crossentropy";
  static constexpr std::array aliases{"bce", "BCE"};
  static constexpr const char* meaning =
      "Mean cross-entropy of independent yes-or-no outputs. With one output, its targets are the classes 0 and 1; with "
      "an output for each class, class numbers become one-hot.";
  static constexpr LossTargets targets = LossTargets::labels;
  static constexpr LossLink link = LossLink::sigmoid;
  static constexpr LossOver over = LossOver::elements;

  template <class Key>
  static void options(const Key& key) {
    key("label_smoothing", &BinaryCrossentropy::label_smoothing,
        "How far targets move towards 0.5: t becomes (1 - label_smoothing) t + 0.5 label_smoothing.",
        from_zero_to_below(1));
  }
  Smoothing smoothing(std::int64_t) const { return {1.0f - label_smoothing, 0.5f * label_smoothing}; }
  static double chance(std::int64_t) { return std::log(2.0); }

  template <class Math>
  TRAINCTL_KERNEL_FUNCTION float element(float x, float t) const {
    const float positive = x < 0 ? 0.0f : x;  // keeps NaN
    return positive - x * t + Math::softplus(x < 0 ? x : -x);
  }
  template <class Math>
  TRAINCTL_KERNEL_FUNCTION float slope(float x, float t) const {
    return Math::sigmoid(x) - t;
  }
};

}  // namespace trainctl
