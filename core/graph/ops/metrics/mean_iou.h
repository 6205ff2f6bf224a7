// Intersection over union (Jaccard, 1901) of predictions and targets, for masks: the mean over the classes that occur
// among predictions or targets. Yes-or-no outputs are combined and have the two classes no and yes.
#pragma once

#include "core/graph/ops/metrics/outcomes.h"

namespace trainctl {

struct MeanIou : OutcomeMetric {
  static constexpr const char* name = "mean_iou";
  static constexpr const char* meaning =
      "Mean over classes of the intersection over union of predictions and targets; for yes-or-no outputs, mean over "
      "the answers no and yes.";

  template <class Key>
  static void options(const Key&) {}
  std::string adapt(const MetricSetting& loss) { return adapt_as(name, loss); }

  double value(std::span<const double> sums, double) const {
    double total = 0, classes = 0;
    const auto add = [&](double both, const Outcomes& o) {
      const double either = both + o.false_positives + o.false_negatives;
      if (either > 0) total += both / either, classes += 1;
    };
    if (yes_or_no) {
      const Outcomes all = of_all(sums);
      add(all.true_positives, all);
      add(all.true_negatives, all);
    } else {
      for (int k = 0; k < outputs; ++k) {
        const Outcomes one = of_output(sums, k);
        add(one.true_positives, one);
      }
    }
    return classes > 0 ? total / classes : 0;
  }
};

}  // namespace trainctl
