// Accuracy. For classes: whether the most likely class (the first one if several are equal) is the target class. For
// yes-or-no outputs: the share of the outputs of a sample that have the right sign.
#pragma once

#include <array>

#include "core/graph/ops/metrics/rule.h"

namespace trainctl {

struct Accuracy : MeanMetric {
  bool yes_or_no = false;  // whether the outputs are logits of independent answers

  static constexpr const char* name = "accuracy";
  static constexpr std::array aliases{"acc", "binary_accuracy", "categorical_accuracy", "sparse_categorical_accuracy"};
  static constexpr const char* meaning =
      "Share of correctly classified samples or, if the loss is for yes-or-no outputs, of correct outputs. The loss "
      "alone decides between the two, whichever of Keras' names is written.";
  static constexpr bool larger_is_better = true;

  template <class Key>
  static void options(const Key&) {}
  std::string adapt(const MetricSetting& loss) {
    yes_or_no = loss.targets == LossTargets::labels;
    const bool one_value = loss.values == 1 && !yes_or_no && loss.targets != LossTargets::class_numbers;
    return one_value ? "accuracy is not defined for a single value: use mean_absolute_error" : "";
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
