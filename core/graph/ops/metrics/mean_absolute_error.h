// The mean absolute error and the mean absolute percentage error.
#pragma once

#include <array>

#include "core/graph/ops/metrics/rule.h"

namespace trainctl {

struct MeanAbsoluteError : ValueMetric {
  static constexpr const char* name = "mean_absolute_error";
  static constexpr std::array aliases{"mae", "MAE"};
  static constexpr const char* meaning = "Mean of the absolute differences from target values.";
  static constexpr bool larger_is_better = false;

  static std::string adapt(const MetricSetting& loss) { return wants_values(name, loss); }

  template <class Row, class Target>
  TRAINCTL_KERNEL_FUNCTION float row(const Row& row, const Target& target) const {
    const float sum = row.sum([=](std::int64_t k, float x) TRAINCTL_KERNEL_LAMBDA {
      const float difference = x - target(k);
      return difference < 0 ? -difference : difference;
    });
    return sum / static_cast<float>(row.values);
  }
};

// 100 |x - t| / max(|t|, 1e-7).
struct MeanAbsolutePercentageError : ValueMetric {
  static constexpr const char* name = "mean_absolute_percentage_error";
  static constexpr std::array aliases{"mape", "MAPE"};
  static constexpr const char* meaning =
      "Mean of the absolute differences from target values, in percent of each target value.";
  static constexpr bool larger_is_better = false;

  static std::string adapt(const MetricSetting& loss) { return wants_values(name, loss); }

  template <class Row, class Target>
  TRAINCTL_KERNEL_FUNCTION float row(const Row& row, const Target& target) const {
    const float sum = row.sum([=](std::int64_t k, float x) TRAINCTL_KERNEL_LAMBDA {
      const float t = target(k), size = t < 0 ? -t : t, difference = x - t;
      return (difference < 0 ? -difference : difference) / (size < 1e-7f ? 1e-7f : size);
    });
    return 100.0f * sum / static_cast<float>(row.values);
  }
};

}  // namespace trainctl
