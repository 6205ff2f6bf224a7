// The coefficient of determination of each output, 1 - sum((x - t)^2) / sum((t - mean of t)^2), and its mean over the
// outputs; 0 for an output with equal targets for all samples, as in Keras. The denominator is computed from sum(t^2),
// sum(t) and n, which cancels if the targets vary little relative to their size. Therefore the sums and the denominator
// have twice the precision of float64.
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
      const double around = around_mean(sums, k);
      total += around > 0 ? 1 - term_sum(sums, 3, k) / around : 0;
    }
    return total / outputs;
  }
  std::string zero_division(std::span<const double> sums) const {
    int equal = 0;
    for (int k = 0; k < outputs; ++k) equal += around_mean(sums, k) == 0 ? 1 : 0;
    if (equal == 0) return "";
    if (outputs == 1) return "counts as 0, since the targets of all samples are equal";
    return "counts " + std::to_string(equal) + " of " + std::to_string(outputs) +
           " outputs as 0, since their targets are equal for all samples";
  }

 private:
  double part_of_sum(std::span<const double> sums, int part, int term, int output) const {
    return sums[static_cast<std::size_t>((part * terms + term) * outputs + output)];
  }
  // The sum of a term, rounded to float64.
  double term_sum(std::span<const double> sums, int term, int output) const {
    double whole = 0;
    for (int part = 0; part < sum_parts; ++part) whole += part_of_sum(sums, part, term, output);
    return whole;
  }
  // sum((t - mean)^2). With a center c near the mean and d = sum(t - c), this is sum(t^2) - c sum(t) - c d - d^2 / n.
  // 0 if it is as small as the rounding errors of the parts.
  double around_mean(std::span<const double> sums, int output) const {
    const double count = term_sum(sums, 0, output), center = term_sum(sums, 1, output) / count;
    PreciseSum differences, squares;
    for (int part = 0; part < sum_parts; ++part) {
      const double of_targets = part_of_sum(sums, part, 1, output);
      differences.add(of_targets);
      differences.add_product(-center, part_of_sum(sums, part, 0, output));
      squares.add(part_of_sum(sums, part, 2, output));
      squares.add_product(-center, of_targets);
    }
    squares.add_product(-center, differences.sum);
    squares.add_product(-center, differences.rest);
    const double difference = differences.sum + differences.rest;
    const double around = squares.sum + squares.rest - difference * difference / count;
    return around > std::ldexp(term_sum(sums, 2, output), -68) ? around : 0;
  }
};

}  // namespace trainctl
