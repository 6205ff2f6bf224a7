// The mean squared error and the root mean squared error.
#pragma once

#include <array>

#include "core/graph/ops/metrics/rule.h"

namespace trainctl {

struct SquaredErrorMetric : ValueMetric {
  static constexpr bool larger_is_better = false;

  template <class Row, class Target>
  TRAINCTL_KERNEL_FUNCTION float row(const Row& row, const Target& target) const {
    const float sum = row.sum([=](std::int64_t k, float x) TRAINCTL_KERNEL_LAMBDA {
      const float difference = x - target(k);
      return difference * difference;
    });
    return sum / static_cast<float>(row.values);
  }
};

struct MeanSquaredErrorMetric : SquaredErrorMetric {
  static constexpr const char* name = "mean_squared_error";
  static constexpr std::array aliases{"mse", "MSE"};
  static constexpr const char* meaning = "Mean of the squared differences from target values.";

  static std::string adapt(const MetricSetting& loss) { return wants_values(name, loss); }
};

struct RootMeanSquaredError : SquaredErrorMetric {
  static constexpr const char* name = "root_mean_squared_error";
  static constexpr std::array aliases{"rmse", "RMSE"};
  static constexpr const char* meaning = "Root of the mean of the squared differences from target values.";

  static std::string adapt(const MetricSetting& loss) { return wants_values(name, loss); }
  static double value(std::span<const double> sums, double count) { return std::sqrt(sums[0] / count); }
};

}  // namespace trainctl
