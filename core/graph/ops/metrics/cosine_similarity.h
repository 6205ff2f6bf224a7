// The cosine of the angle between a row of predictions and its targets: sum(t x) / (|t| |x|), 0 if either is zero.
#pragma once

#include "core/graph/ops/metrics/rule.h"

namespace trainctl {

struct CosineSimilarity : ValueMetric {
  static constexpr const char* name = "cosine_similarity";
  static constexpr const char* meaning =
      "Mean cosine of the angle between the outputs and the target values of a sample: 1 if they have the same "
      "direction, -1 if they have opposite directions.";
  static constexpr bool larger_is_better = true;

  static std::string adapt(const MetricSetting& loss) { return wants_values(name, loss); }

  template <class Row, class Target>
  TRAINCTL_KERNEL_FUNCTION float row(const Row& row, const Target& target) const {
    const float product = row.sum([=](std::int64_t k, float x) TRAINCTL_KERNEL_LAMBDA { return x * target(k); });
    const float predicted = row.sum([=](std::int64_t, float x) TRAINCTL_KERNEL_LAMBDA { return x * x; });
    const float wanted = row.sum([=](std::int64_t k, float) TRAINCTL_KERNEL_LAMBDA { return target(k) * target(k); });
    const float lengths = Row::root(predicted) * Row::root(wanted);
    return lengths == 0 ? 0.0f : product / lengths;
  }
};

}  // namespace trainctl
