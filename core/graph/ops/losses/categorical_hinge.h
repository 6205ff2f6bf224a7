// The multiclass hinge loss (Weston and Watkins, 1999): max(0, 1 + max((1 - t) x) - sum(t x)), for one-hot targets t.
#pragma once

#include "core/graph/ops/losses/rule.h"

namespace trainctl {

struct CategoricalHinge {
  static constexpr const char* name = "categorical_hinge";
  static constexpr const char* meaning =
      "How much the output of the target class falls short of exceeding the largest other output by 1. Targets are "
      "one-hot; class numbers become one-hot.";
  static constexpr LossTargets targets = LossTargets::distributions;
  static constexpr LossLink link = LossLink::identity;
  static constexpr LossOver over = LossOver::rows;

  template <class Key>
  static void options(const Key&) {}
  Smoothing smoothing(std::int64_t) const { return {}; }
  static double chance(std::int64_t) { return 0; }

  template <class Row, class Target>
  TRAINCTL_KERNEL_FUNCTION float row(const Row& row, const Target& target, float weight) const {
    const float others =
        row.largest([=](std::int64_t k, float x) TRAINCTL_KERNEL_LAMBDA { return (1.0f - target(k)) * x; });
    // The output of the target class, and the number of other classes with the largest value, which share the gradient.
    const Sums<2> sums = row.template sums<2>([=](std::int64_t k, float x) TRAINCTL_KERNEL_LAMBDA {
      const float t = target(k);
      return Sums<2>{{t * x, (1.0f - t) * x == others ? 1.0f : 0.0f}};
    });
    const float margin = 1.0f + others - sums.of[0];
    const bool met = margin < 0;  // false if `margin` is NaN
    if (row.trains()) {
      const float share = 1.0f / sums.of[1];
      row.write([=](std::int64_t k, float x) TRAINCTL_KERNEL_LAMBDA {
        const float t = target(k), other = (1.0f - t) * x == others ? share * (1.0f - t) : 0.0f;
        return met ? 0.0f : weight * (other - t);
      });
    }
    return met ? 0.0f : margin;
  }
};

}  // namespace trainctl
