// The coefficient of determination of each output, 1 - sum((x - t)^2) / sum((t - mean of t)^2), and its mean over the
// outputs; 0 for an output whose targets are all alike. As in Keras the sum below comes from the sums of t and of t^2,
// whose difference is rough where targets vary by little of what they are.
#pragma once

#include "core/graph/ops/metrics/rule.h"

namespace trainctl {

struct R2Score {
  int outputs = 1;  // in a row

  static constexpr const char* name = "r2_score";
  static constexpr const char* meaning =
      "Share of the variance of target values that the predictions explain; the mean of the outputs' shares.";
  static constexpr bool larger_is_better = true;
  static constexpr MetricOver over = MetricOver::outputs;
  static constexpr int terms = 3;

  template <class Key>
  static void options(const Key&) {}
  std::string adapt(const MetricSetting& loss) {
    if (loss.targets == LossTargets::class_numbers) {
      return "r2_score wants target values, but the loss takes class numbers";
    }
    if (loss.values > most_counted_outputs) return too_many_outputs(name, loss.values);
    outputs = static_cast<int>(loss.values);
    return "";
  }
  template <class Flag>
  void adapted(const Flag&) const {}
  static constexpr bool of_predictions(const MetricSetting& loss) { return loss.linked; }
  TRAINCTL_KERNEL_FUNCTION int sums() const { return terms * outputs; }

  // The target, its square, and that of the difference.
  template <class Row, class Target>
  TRAINCTL_KERNEL_FUNCTION auto of_outputs(const Row&, const Target& target) const {
    return [=](std::int64_t k, float x) TRAINCTL_KERNEL_LAMBDA {
      const float t = target(k), difference = x - t;
      return Sums<3>{{t, t * t, difference * difference}};
    };
  }

  double value(std::span<const double> sums, double count) const {
    const auto n = static_cast<std::size_t>(outputs);
    double total = 0;
    for (std::size_t k = 0; k < n; ++k) {
      const double around_mean = sums[n + k] - sums[k] * sums[k] / count;
      total += around_mean > 0 ? 1 - sums[2 * n + k] / around_mean : 0;
    }
    return total / static_cast<double>(n);
  }
};

}  // namespace trainctl
