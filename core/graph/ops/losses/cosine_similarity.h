// Minus the cosine of the angle between a row of predictions and its targets: -sum(t x) / (|t| |x|); 0 if either is
// zero.
#pragma once

#include "core/graph/ops/losses/rule.h"

namespace trainctl {

struct CosineSimilarityLoss {
  static constexpr const char* name = "cosine_similarity";
  static constexpr const char* meaning =
      "Minus the cosine of the angle between the outputs and the target values: -1 if they have the same direction, 1 "
      "if they have opposite directions. The loss and its gradient are 0 if all outputs or all target values are 0.";
  static constexpr LossTargets targets = LossTargets::values;
  static constexpr LossLink link = LossLink::identity;
  static constexpr LossOver over = LossOver::rows;

  template <class Key>
  static void options(const Key&) {}
  Smoothing smoothing(std::int64_t) const { return {}; }
  static double chance(std::int64_t) { return 0; }

  template <class Row, class Target>
  TRAINCTL_KERNEL_FUNCTION float row(const Row& row, const Target& target, float weight) const {
    const Sums<3> sums = row.template sums<3>([=](std::int64_t k, float x) TRAINCTL_KERNEL_LAMBDA {
      const float t = target(k);
      return Sums<3>{{t * x, x * x, t * t}};
    });
    const float lengths = sqrtf(sums.of[1]) * sqrtf(sums.of[2]);
    const bool zero = lengths == 0;
    const float cosine = zero ? 0.0f : sums.of[0] / lengths;
    if (row.trains()) {
      const float of_target = zero ? 0.0f : weight / lengths, of_output = zero ? 0.0f : weight * cosine / sums.of[1];
      row.write([=](std::int64_t k, float x) TRAINCTL_KERNEL_LAMBDA { return of_output * x - of_target * target(k); });
    }
    return -cosine;
  }
};

}  // namespace trainctl
