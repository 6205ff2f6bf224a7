// Precision, recall, their harmonic mean F1 (van Rijsbergen, 1979), and specificity. The first three are 0 where they
// would divide by 0, as in scikit-learn, and their zero_division() tells it. A specificity without negatives is NaN and
// not included in averages.
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
  std::string zero_division(std::span<const double> sums) const {
    return zero_division_of(sums, &Outcomes::predicted, "is predicted as positive", "is predicted as one of them");
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
  std::string zero_division(std::span<const double> sums) const {
    return zero_division_of(sums, &Outcomes::answers, "has a positive target", "has one of them as its target");
  }
};

struct F1Score : AveragedOutcomes {
  static constexpr const char* name = "f1_score";
  static constexpr const char* meaning = "Harmonic mean of precision and recall; averaged (see average).";

  std::string adapt(const MetricSetting& loss) { return adapt_as(name, loss); }
  double value(std::span<const double> sums, double) const {
    return averaged(sums, [](const Outcomes& o) { return ratio(2 * o.true_positives, o.predicted() + o.answers()); });
  }
  std::string zero_division(std::span<const double> sums) const {
    return zero_division_of(sums, &Outcomes::occurrences, "is predicted as positive or has a positive target",
                            "is predicted as one of them or has one of them as its target");
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
