// The loss of values that an expression of the config has computed (core/program/expression_values.h).
#pragma once

#include "core/graph/ops/losses/rule.h"

namespace trainctl {

struct ExpressionLoss {
  static constexpr const char* name = "expression";
  static constexpr const char* meaning =
      "A loss of one's own: an expression of `y_true`, the targets, and `y_pred`, the output of the network, both "
      "(batch, ...). Operators and slices are those of Python, functions and their arguments those of keras.ops. The "
      "loss is the mean of the values; mean() without an axis is the mean of all values of the batch. Class numbers "
      "are one-hot if the network has an output for each class, and values if it has one output.";
  static constexpr LossTargets targets = LossTargets::values;
  static constexpr LossLink link = LossLink::identity;
  static constexpr LossOver over = LossOver::elements;

  template <class Key>
  static void options(const Key&) {}
  Smoothing smoothing(std::int64_t) const { return {}; }
  static double chance(std::int64_t) { return 0; }

  template <class Math>
  TRAINCTL_KERNEL_FUNCTION float element(float x, float) const {
    return x;
  }
  template <class Math>
  TRAINCTL_KERNEL_FUNCTION float slope(float, float) const {
    return 1;
  }
};

}  // namespace trainctl
