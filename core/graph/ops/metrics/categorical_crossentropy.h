// The cross-entropy of classes as a metric. Logits x: log(sum e^x) sum(t) - sum(t x). Probabilities p, which are first
// divided by their sum and clipped to [1e-7, 1 - 1e-7], as in Keras: -sum(t log p).
#pragma once

#include <array>

#include "core/graph/ops/metrics/probabilities.h"

namespace trainctl {

struct CategoricalCrossentropyMetric : ProbabilityMetric<LossLink::softmax> {
  float label_smoothing = 0;

  static constexpr const char* name = "categorical_crossentropy";
  static constexpr std::array aliases{"sparse_categorical_crossentropy"};
  static constexpr const char* meaning =
      "Mean cross-entropy of the predicted class probabilities, without the smoothing of the loss. Targets are those "
      "of the loss, class numbers or probabilities, whichever of Keras' two names is written.";
  static constexpr bool larger_is_better = false;

  template <class Key>
  static void options(const Key& key) {
    key("label_smoothing", &CategoricalCrossentropyMetric::label_smoothing,
        "Share of the target's probability that is distributed evenly over all classes.", from_zero_to_below(1));
  }
  std::string adapt(const MetricSetting& loss) {
    if (loss.values == 1) return "categorical_crossentropy needs several classes: use binary_crossentropy";
    return adapt_to(loss,
                    "categorical_crossentropy needs class probabilities, but the output has logits of yes-or-no "
                    "answers: use binary_crossentropy");
  }

  template <class Row, class Target>
  TRAINCTL_KERNEL_FUNCTION float row(const Row& row, const Target& target) const {
    using Math = typename Row::Math;
    // For logits, `whole` is log(sum e^x), otherwise the sum of the probabilities.
    const float whole =
        of_logits ? log_sum_exp(row) : row.sum([](std::int64_t, float x) TRAINCTL_KERNEL_LAMBDA { return x; });
    const bool logits = of_logits;
    const auto term = [=](float x) TRAINCTL_KERNEL_LAMBDA {
      return logits ? whole - x : -Math::log(clipped_probability(x / whole));
    };
    const float scale = 1.0f - label_smoothing, shift = label_smoothing / static_cast<float>(row.values);
    if (!target.is_class_number()) {
      return row.sum([=](std::int64_t k, float x) TRAINCTL_KERNEL_LAMBDA {
        const float t = scale * target(k) + shift;
        return t == 0 ? 0.0f : t * term(x);  // a class without probability may have the logit -infinity
      });
    }
    const std::int64_t label = target.label();
    const float own = label < 0 || label >= row.values ? 0.0f : scale * term(row.at(label));
    if (shift == 0) return own;
    return own + shift * row.sum([=](std::int64_t, float x) TRAINCTL_KERNEL_LAMBDA { return term(x); });
  }
};

}  // namespace trainctl
