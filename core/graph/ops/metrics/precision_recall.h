// Precision, recall, their harmonic mean F1 (van Rijsbergen, 1979), and specificity. The first three are 0 where they
// would divide by 0, as in scikit-learn. A specificity without negatives is NaN and not included in averages.
#pragma once

#include <limits>

#include "core/graph/ops/metrics/outcomes.h"

namespace trainctl {

struct PrecisionScore : AveragedOutcomes {
  static constexpr const char* name = "precision";
  static constexpr const char* meaning =
      "Share of the predictions of a class, or of yes, that are correct; averaged (see average).";

  std::string adapt(const MetricSetting& loss) { return adapt_as(name, loss); }
  double value(std::span<const double> sums, double) const {
    return averaged(sums, [](const Outcomes& o) { return ratio(o.true_positives, o.predicted()); });
  }
};

struct Recall : AveragedOutcomes {
  static constexpr const char* name = "recall";
  static constexpr const char* meaning =
      "Share of the samples of a class, or with the target yes, that are predicted as such; averaged (see average).";

  std::string adapt(const MetricSetting& loss) { return adapt_as(name, loss); }
  double value(std::span<const double> sums, double) const {
    return averaged(sums, [](const Outcomes& o) { return ratio(o.true_positives, o.answers()); });
  }
};

struct F1Score : AveragedOutcomes {
  static constexpr const char* name = "f1_score";
  static constexpr const char* meaning = "Harmonic mean of precision and recall; averaged (see average).";

  std::string adapt(const MetricSetting& loss) { return adapt_as(name, loss); }
  double value(std::span<const double> sums, double) const {
    return averaged(sums, [](const Outcomes& o) { return ratio(2 * o.true_positives, o.predicted() + o.answers()); });
  }
};

struct Specificity : AveragedOutcomes {
  static constexpr const char* name = "specificity";
  static constexpr const char* wants = "samples that are not of a class, or whose target is no";
  static constexpr const char* meaning =
      "Share of the samples that are not of a class, or with the target no, that are predicted as such; averaged (see "
      "average).";

  std::string adapt(const MetricSetting& loss) { return adapt_as(name, loss); }
  double value(std::span<const double> sums, double) const {
    return averaged(sums, [](const Outcomes& o) {
      const double negatives = o.true_negatives + o.false_positives;
      return negatives > 0 ? o.true_negatives / negatives : std::numeric_limits<double>::quiet_NaN();
    });
  }
};

}  // namespace trainctl
