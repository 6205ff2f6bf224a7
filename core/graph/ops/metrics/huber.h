// Huber's loss as a metric.
#pragma once

#include "core/graph/ops/losses/huber.h"
#include "core/graph/ops/metrics/rule.h"

namespace trainctl {

struct HuberMetric : ValueMetric {
  float delta = 1;

  static constexpr const char* name = Huber::name;
  static constexpr const char* meaning = Huber::meaning;
  static constexpr bool larger_is_better = false;

  template <class Key>
  static void options(const Key& key) {
    key("delta", &HuberMetric::delta, "The difference above which the metric is linear.", more_than(0));
  }
  static std::string adapt(const MetricSetting& loss) { return wants_values(name, loss); }

  template <class Row, class Target>
  TRAINCTL_KERNEL_FUNCTION float row(const Row& row, const Target& target) const {
    const Huber loss{delta};
    const float sum = row.sum([=](std::int64_t k, float x) TRAINCTL_KERNEL_LAMBDA {
      return loss.template element<typename Row::Math>(x, target(k));
    });
    return sum / static_cast<float>(row.values);
  }
};

}  // namespace trainctl
