// The mean of values that an expression of the config has computed (core/program/expression_values.h).
#pragma once

#include "core/graph/ops/metrics/rule.h"

namespace trainctl {

// Reads rows of one value; the targets are not used.
struct ExpressionMetric : MeanMetric {
  static constexpr const char* name = "expression";
  static constexpr const char* meaning =
      "A metric of one's own, which is reported under its `name`: the mean of an expression of `y_true`, the targets, "
      "and `y_pred`, the output of the network with its last activation, as in a loss that is an expression. Class "
      "numbers are one-hot if the network has an output for each class, and values if it has one output.";
  static constexpr bool larger_is_better = false;  // unless its option `mode` says so

  template <class Key>
  static void options(const Key&) {}
  static std::string adapt(const MetricSetting&) { return ""; }
  static constexpr bool of_predictions(const MetricSetting&) { return true; }

  template <class Row, class Target>
  TRAINCTL_KERNEL_FUNCTION float row(const Row& row, const Target&) const {
    return row.at(0);
  }
};

}  // namespace trainctl
