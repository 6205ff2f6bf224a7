// Precision, recall, their harmonic mean F1 (van Rijsbergen, 1979), and specificity. The first three are 0 where they
// divide by nothing, as in scikit-learn; a specificity without negatives is not a number, and no part of a mean.
#pragma once

#include <limits>

#include "core/graph/ops/metrics/outcomes.h"

namespace trainctl {

struct PrecisionScore : AveragedOutcomes {
  static constexpr const char* name = "precision";
  static constexpr const char* meaning =
      "Share of the predictions of a class, or of the answer yes, that are right; averaged.";

  std::string adapt(const MetricSetting& loss) { return adapt_as(name, loss); }
  double value(std::span<const double> sums, double) const {
    return averaged(sums, [](const Outcomes& o) { return ratio(o.true_positives, o.predicted()); });
  }
};

struct Recall : AveragedOutcomes {
  static constexpr const char* name = "recall";
  static constexpr const char* meaning =
      "Share of the samples of a class, or of the answers yes, that are found; averaged.";

  std::string adapt(const MetricSetting& loss) { return adapt_as(name, loss); }
  double value(std::span<const double> sums, double) const {
    return averaged(sums, [](const Outcomes& o) { return ratio(o.true_positives, o.answers()); });
  }
};

struct F1Score : AveragedOutcomes {
  static constexpr const char* name = "f1_score";
  static constexpr const char* meaning = "Harmonic mean of precision and recall; averaged.";

  std::string adapt(const MetricSetting& loss) { return adapt_as(name, loss); }
  double value(std::span<const double> sums, double) const {
    return averaged(sums, [](const Outcomes& o) { return ratio(2 * o.true_positives, o.predicted() + o.answers()); });
  }
};

struct Specificity : AveragedOutcomes {
  static constexpr const char* name = "specificity";
  static constexpr const char* wants = "samples that are not of a class, or whose answer is no";
  static constexpr const char* meaning =
      "Share of the samples that are not of a class, or of the answers no, that are not taken for it; averaged.";

  std::string adapt(const MetricSetting& loss) { return adapt_as(name, loss); }
  double value(std::span<const double> sums, double) const {
    return averaged(sums, [](const Outcomes& o) {
      const double negatives = o.true_negatives + o.false_positives;
      return negatives > 0 ? o.true_negatives / negatives : std::numeric_limits<double>::quiet_NaN();
    });
  }
};

}  // namespace trainctl
