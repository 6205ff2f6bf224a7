// The mean of the absolute differences between predictions and target values.
#pragma once

#include "core/graph/ops/metrics/rule.h"

namespace trainctl {

struct MeanAbsoluteError : MeanMetric {
  static constexpr const char* name = "mean_absolute_error";
  static constexpr const char* meaning = "Mean of the absolute differences from target values.";
  static constexpr bool larger_is_better = false;

  template <class Key>
  static void options(const Key&) {}
  static std::string adapt(const MetricSetting& loss) {
    return loss.targets == LossTargets::class_numbers
               ? "mean_absolute_error wants target values, but the loss takes class numbers"
               : "";
  }
  static constexpr bool of_predictions(const MetricSetting& loss) { return loss.linked; }

  template <class Row, class Target>
  TRAINCTL_KERNEL_FUNCTION float row(const Row& row, const Target& target) const {
    const float sum = row.sum([=](std::int64_t k, float x) TRAINCTL_KERNEL_LAMBDA {
      const float difference = x - target(k);
      return difference < 0 ? -difference : difference;
    });
    return sum / static_cast<float>(row.values);
  }
};

}  // namespace trainctl
