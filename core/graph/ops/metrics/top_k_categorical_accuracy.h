// Top-k accuracy: whether fewer than k predictions are larger than the prediction of the target class.
#pragma once

#include <array>

#include "core/graph/ops/metrics/rule.h"

namespace trainctl {

struct TopKCategoricalAccuracy : MeanMetric {
  std::int64_t k = 5;

  static constexpr const char* name = "top_k_categorical_accuracy";
  static constexpr std::array aliases{"sparse_top_k_categorical_accuracy"};
  static constexpr const char* meaning = "Share of samples whose class is among the k most likely classes.";
  static constexpr bool larger_is_better = true;

  template <class Key>
  static void options(const Key& key) {
    key("k", &TopKCategoricalAccuracy::k, "Number of most likely classes that are considered.", at_least(1));
  }
  static std::string adapt(const MetricSetting& loss) {
    const bool exclusive = loss.targets != LossTargets::labels && loss.values > 1;
    return exclusive ? "" : "top_k_categorical_accuracy needs mutually exclusive classes";
  }
  static constexpr bool of_predictions(const MetricSetting&) { return false; }

  template <class Row, class Target>
  TRAINCTL_KERNEL_FUNCTION float row(const Row& row, const Target& target) const {
    const std::int64_t label = target.label();
    if (label < 0 || label >= row.values) return 0;
    const float threshold = row.at(label);
    const float larger =
        row.sum([=](std::int64_t, float x) TRAINCTL_KERNEL_LAMBDA { return x > threshold ? 1.0f : 0.0f; });
    return larger < static_cast<float>(k) ? 1.0f : 0.0f;
  }
};

}  // namespace trainctl
