// The base of metrics that count true and false positives and negatives, for each class or yes-or-no output. The
// predicted class is the one with the largest output; a yes-or-no output predicts yes if its probability is above 1/2.
#pragma once

#include <cmath>
#include <limits>

#include "core/graph/ops/metrics/rule.h"

namespace trainctl {

// The average of a score over classes or outputs: their mean (macro), the score of the counts of all of them together
// (micro), or their mean weighted by the samples of each. automatic: micro for yes-or-no outputs, otherwise macro.
enum class MetricAverage { automatic, macro, micro, weighted };

template <>
struct EnumNames<MetricAverage> {
  static constexpr EnumName<MetricAverage> names[] = {{MetricAverage::automatic, "auto"},
                                                      {MetricAverage::macro, "macro"},
                                                      {MetricAverage::micro, "micro"},
                                                      {MetricAverage::weighted, "weighted"}};
};

// Counts of outcomes; each sample counts with its weight.
struct Outcomes {
  double true_positives = 0, false_positives = 0, false_negatives = 0, true_negatives = 0;

  double predicted() const { return true_positives + false_positives; }
  double answers() const { return true_positives + false_negatives; }
  double occurrences() const { return predicted() + answers(); }
  Outcomes& operator+=(const Outcomes& other) {
    true_positives += other.true_positives, false_positives += other.false_positives;
    false_negatives += other.false_negatives, true_negatives += other.true_negatives;
    return *this;
  }
};

// Computes the counts for each class or output.
struct OutcomeMetric {
  bool yes_or_no = false;  // whether the outputs are logits of independent answers
  int outputs = 1;         // number of outputs in a row

  static constexpr bool larger_is_better = true;
  static constexpr MetricOver over = MetricOver::outputs;
  static constexpr int terms = 4;

  template <class Flag>
  void adapted(const Flag& flag) const {
    flag("yes_or_no", yes_or_no);
  }
  static constexpr bool of_predictions(const MetricSetting&) { return false; }
  TRAINCTL_KERNEL_FUNCTION int sums() const { return terms * outputs; }

  template <class Row, class Target>
  TRAINCTL_KERNEL_FUNCTION auto of_outputs(const Row& row, const Target& target) const {
    const bool answers = yes_or_no;
    const std::int64_t best = answers ? -1 : row.first_largest(), label = answers ? -1 : target.label();
    return [=](std::int64_t k, float x) TRAINCTL_KERNEL_LAMBDA {
      const bool predicted = answers ? x > 0 : k == best, answer = answers ? target(k) > 0.5f : k == label;
      return Sums<4>{{predicted && answer ? 1.0f : 0.0f, predicted && !answer ? 1.0f : 0.0f,
                      !predicted && answer ? 1.0f : 0.0f, !predicted && !answer ? 1.0f : 0.0f}};
    };
  }

 protected:
  std::string adapt_as(const char* name, const MetricSetting& loss) {
    yes_or_no = loss.targets == LossTargets::labels;
    if (loss.targets == LossTargets::values) {
      return std::string(name) + " needs classes or yes-or-no answers, for example with a cross-entropy";
    }
    if (loss.values > max_counted_outputs) return too_many_outputs(name, loss.values);
    outputs = static_cast<int>(loss.values);
    return "";
  }
  Outcomes of_output(std::span<const double> sums, int output) const {
    const auto at = [&](int term) { return sums[static_cast<std::size_t>(term * outputs + output)]; };
    return {at(0), at(1), at(2), at(3)};
  }
  Outcomes of_all(std::span<const double> sums) const {
    Outcomes total;
    for (int k = 0; k < outputs; ++k) total += of_output(sums, k);
    return total;
  }
};

// A score of outcomes, averaged over classes or outputs.
struct AveragedOutcomes : OutcomeMetric {
  MetricAverage average = MetricAverage::automatic;

  template <class Key>
  static void options(const Key& key) {
    key("average", &AveragedOutcomes::average,
        "macro: mean over the classes that occur among targets or predictions; weighted: mean weighted by how often a "
        "class is the target; micro: computed from the counts of all outputs together; auto: macro for classes, micro "
        "for yes-or-no outputs.",
        Range{});
  }

 protected:
  // The average of score(Outcomes) over the outputs for which the score is a number; NaN if there is no such output.
  template <class Score>
  double averaged(std::span<const double> sums, const Score& score) const {
    if (is_of_all()) return score(of_all(sums));
    double total = 0, weights = 0;
    bool undefined = false;
    for (int k = 0; k < outputs; ++k) {
      const Outcomes outcomes = of_output(sums, k);
      const double weight = weight_of(outcomes);
      if (weight == 0) continue;
      const double own = score(outcomes);
      if (std::isnan(own)) {
        undefined = true;
        continue;
      }
      total += weight * own;
      weights += weight;
    }
    if (weights > 0) return total / weights;
    return undefined ? std::numeric_limits<double>::quiet_NaN() : 0;
  }
  static double ratio(double a, double b) { return b > 0 ? a / b : 0; }
  // Returns why a score is 0, or includes outputs as 0, by ratio(): "" if the divisor is never 0. `no_sample` and
  // `no_sample_of_any` are the predicates of the sentence "no sample ..." for all outputs together and for some
  // outputs.
  std::string zero_division_of(std::span<const double> sums, double (Outcomes::*divisor)() const, const char* no_sample,
                               const char* no_sample_of_any) const {
    if (is_of_all()) {
      return (of_all(sums).*divisor)() > 0 ? "" : std::string("counts as 0, since no sample ") + no_sample;
    }
    int undefined = 0, included = 0;
    for (int k = 0; k < outputs; ++k) {
      const Outcomes outcomes = of_output(sums, k);
      if (weight_of(outcomes) == 0) continue;
      ++included;
      undefined += (outcomes.*divisor)() > 0 ? 0 : 1;
    }
    if (included == 0) return std::string("counts as 0, since no sample ") + no_sample;
    if (undefined == 0) return "";
    return "counts " + std::to_string(undefined) + " of " + std::to_string(outputs) +
           (yes_or_no ? " outputs" : " classes") + " as 0, since no sample " + no_sample_of_any;
  }

 private:
  // Whether the score is computed from the counts of all outputs together.
  bool is_of_all() const { return average == MetricAverage::automatic ? yes_or_no : average == MetricAverage::micro; }
  // The weight of an output in the average.
  double weight_of(const Outcomes& outcomes) const {
    if (average == MetricAverage::weighted) return outcomes.answers();
    return outcomes.occurrences() > 0 ? 1 : 0;
  }
};

}  // namespace trainctl
