// The Dice loss (Milletari et al., 2016) of a sample, over the sigmoids p of its logits at all positions and channels:
// 1 - 2 sum(t p) / (sum(t) + sum(p) + 1e-7).
#pragma once

#include "core/graph/ops/losses/rule.h"

namespace trainctl {

struct Dice {
  static constexpr const char* name = "dice";
  static constexpr const char* meaning =
      "One minus the Dice coefficient, the overlap of the yes-or-no outputs of a sample with its targets, over all "
      "positions and channels of the sample together; for masks.";
  static constexpr LossTargets targets = LossTargets::labels;
  static constexpr LossLink link = LossLink::sigmoid;
  static constexpr LossOver over = LossOver::samples;

  template <class Key>
  static void options(const Key&) {}
  Smoothing smoothing(std::int64_t) const { return {}; }
  static double chance(std::int64_t) { return 0; }

  template <class Row, class Target>
  TRAINCTL_KERNEL_FUNCTION float row(const Row& row, const Target& target, float weight) const {
    const Sums<3> sums = row.template sums<3>([=](std::int64_t k, float x) TRAINCTL_KERNEL_LAMBDA {
      const float p = Row::sigmoid(x), t = target(k);
      return Sums<3>{{t * p, t, p}};
    });
    const float all = sums.of[1] + sums.of[2] + 1e-7f, share = sums.of[0] / all;
    if (row.trains()) {
      const float scale = 2.0f * weight / all;
      row.write([=](std::int64_t k, float x) TRAINCTL_KERNEL_LAMBDA {
        return scale * (share - target(k)) * Row::sigmoid(x) * Row::sigmoid(-x);
      });
    }
    return 1.0f - 2.0f * share;
  }
};

}  // namespace trainctl
