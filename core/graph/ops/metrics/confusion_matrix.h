// The confusion matrix: a table with the number of samples for each pair of target class and predicted class.
#pragma once

#include "core/graph/ops/metrics/rule.h"

namespace trainctl {

struct ConfusionMatrix {
  bool yes_or_no = false;  // whether the only output is the logit of an answer
  int classes = 1;

  static constexpr const char* name = "confusion_matrix";
  static constexpr const char* meaning =
      "Table of the number of samples (sum of their weights) by target class (row) and predicted class (column); a "
      "yes-or-no output has the classes no and yes. `eval` prints the table, and metrics.jsonl has it for every epoch.";
  static constexpr bool larger_is_better = true;
  static constexpr MetricOver over = MetricOver::cells;

  template <class Key>
  static void options(const Key&) {}
  std::string adapt(const MetricSetting& loss) {
    yes_or_no = loss.targets == LossTargets::labels;
    if (loss.targets == LossTargets::values || (yes_or_no && loss.values > 1)) {
      return std::string(name) + " needs classes or one yes-or-no answer, for example with a cross-entropy";
    }
    if (loss.values * loss.values > max_counted_outputs) {
      return std::string(name) + " has a sum for each pair of classes, and there are more than " +
             std::to_string(max_counted_outputs) + " with " + std::to_string(loss.values) + " classes";
    }
    classes = yes_or_no ? 2 : static_cast<int>(loss.values);
    return "";
  }
  template <class Flag>
  void adapted(const Flag& flag) const {
    flag("yes_or_no", yes_or_no);
  }
  static constexpr bool of_predictions(const MetricSetting&) { return false; }
  TRAINCTL_KERNEL_FUNCTION int sums() const { return classes * classes; }
  int columns() const { return classes; }

  template <class Row, class Target>
  TRAINCTL_KERNEL_FUNCTION int cell(const Row& row, const Target& target) const {
    if (yes_or_no) return (target(0) > 0.5f ? 2 : 0) + (row.at(0) > 0 ? 1 : 0);
    return static_cast<int>(target.label()) * classes + static_cast<int>(row.first_largest());
  }
};

}  // namespace trainctl
