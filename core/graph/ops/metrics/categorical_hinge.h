// The multiclass hinge loss as a metric: max(0, 1 + max((1 - t) x) - sum(t x)), for one-hot targets t.
#pragma once

#include "core/graph/ops/losses/categorical_hinge.h"
#include "core/graph/ops/metrics/rule.h"

namespace trainctl {

struct CategoricalHingeMetric : ValueMetric {
  static constexpr const char* name = CategoricalHinge::name;
  static constexpr const char* meaning =
      "How much the prediction of the target class falls short of exceeding the largest other prediction by 1; mean "
      "over the samples. Targets are one-hot.";
  static constexpr bool larger_is_better = false;

  static std::string adapt(const MetricSetting& loss) { return wants_values(name, loss); }

  template <class Row, class Target>
  TRAINCTL_KERNEL_FUNCTION float row(const Row& row, const Target& target) const {
    const float others =
        row.largest([=](std::int64_t k, float x) TRAINCTL_KERNEL_LAMBDA { return (1.0f - target(k)) * x; });
    const float own = row.sum([=](std::int64_t k, float x) TRAINCTL_KERNEL_LAMBDA { return target(k) * x; });
    const float margin = 1.0f + others - own;
    return margin < 0 ? 0.0f : margin;  // keeps NaN
  }
};

}  // namespace trainctl
