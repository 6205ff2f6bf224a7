// The coefficient of determination of each output, 1 - sum((x - t)^2) / sum((t - mean of t)^2), and its mean over the
// outputs; 0 for an output with equal targets for all samples, as in Keras. The denominator is computed as sum(t^2) -
// sum(t)^2 / n, which cancels if the targets vary little relative to their size. Therefore the sums are exact.
#pragma once

#include "core/graph/ops/metrics/rule.h"

namespace trainctl {

struct R2Score {
  int outputs = 1;  // number of outputs in a row

  static constexpr const char* name = "r2_score";
  static constexpr const char* meaning =
      "Share of the variance of the target values that the predictions explain; mean over the outputs.";
  static constexpr bool larger_is_better = true;
  static constexpr MetricOver over = MetricOver::exact_outputs;
  static constexpr int terms = 4;

  template <class Key>
  static void options(const Key&) {}
  std::string adapt(const MetricSetting& loss) {
    if (loss.targets == LossTargets::class_numbers) {
      return "r2_score needs target values, but the targets of the loss are class numbers";
    }
    if (loss.values > max_counted_outputs) return too_many_outputs(name, loss.values);
    outputs = static_cast<int>(loss.values);
    return "";
  }
  template <class Flag>
  void adapted(const Flag&) const {}
  static constexpr bool of_predictions(const MetricSetting& loss) { return loss.linked; }
  TRAINCTL_KERNEL_FUNCTION int sums() const { return sum_parts * terms * outputs; }

  // The terms: 1 (summed to the sum of the weights), the target, the squared target, and the squared difference.
  TRAINCTL_KERNEL_FUNCTION double term(int i, double x, double t) const {
    return i == 0 ? 1.0 : i == 1 ? t : i == 2 ? t * t : (x - t) * (x - t);
  }

  double value(std::span<const double> sums, double) const {
    double total = 0;
    for (int k = 0; k < outputs; ++k) {
      const auto sum = [&](int i) {
        double whole = 0;
        for (int part = 0; part < sum_parts; ++part) {
          whole += sums[static_cast<std::size_t>((part * terms + i) * outputs + k)];
        }
        return whole;
      };
      const double around_mean = sum(2) - sum(1) * sum(1) / sum(0);
      total += around_mean > 0 ? 1 - sum(3) / around_mean : 0;
    }
    return total / outputs;
  }
};

}  // namespace trainctl
