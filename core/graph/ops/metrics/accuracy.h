// Accuracy: of classes, whether the likeliest class (the first of equals) is the target's class; of yes-or-no outputs,
// the share of a sample's outputs whose sign is right.
#pragma once

#include <array>

#include "core/graph/ops/metrics/rule.h"

namespace trainctl {

struct Accuracy : MeanMetric {
  bool yes_or_no = false;  // whether the loss takes the outputs as logits of independent answers

  static constexpr const char* name = "accuracy";
  static constexpr std::array aliases{"acc"};
  static constexpr const char* meaning =
      "Share of samples classified rightly: of classes, or of yes-or-no outputs, as the loss has it.";
  static constexpr bool larger_is_better = true;

  template <class Key>
  static void options(const Key&) {}
  std::string adapt(const MetricSetting& loss) {
    yes_or_no = loss.targets == LossTargets::labels;
    const bool one_value = loss.values == 1 && !yes_or_no && loss.targets != LossTargets::class_numbers;
    return one_value ? "accuracy has no meaning for a single value: use mean_absolute_error" : "";
  }
  template <class Flag>
  void adapted(const Flag& flag) const {
    flag("yes_or_no", yes_or_no);
  }
  static constexpr bool of_predictions(const MetricSetting&) { return false; }

  template <class Row, class Target>
  TRAINCTL_KERNEL_FUNCTION float row(const Row& row, const Target& target) const {
    if (!yes_or_no) return row.first_largest() == target.label() ? 1.0f : 0.0f;
    const float right = row.sum([=](std::int64_t k, float x)
                                    TRAINCTL_KERNEL_LAMBDA { return (x > 0) == (target(k) > 0.5f) ? 1.0f : 0.0f; });
    return right / static_cast<float>(row.values);
  }
};

}  // namespace trainctl
