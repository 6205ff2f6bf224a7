// The cross-entropy of independent yes-or-no outputs as a metric. Logits: as the loss. Probabilities p, clipped to
// [1e-7, 1 - 1e-7], as in Keras: -t log(p) - (1 - t) log(1 - p).
#pragma once

#include <array>

#include "core/graph/ops/losses/binary_crossentropy.h"
#include "core/graph/ops/metrics/probabilities.h"

namespace trainctl {

struct BinaryCrossentropyMetric : ProbabilityMetric<LossLink::sigmoid> {
  float label_smoothing = 0;

  static constexpr const char* name = BinaryCrossentropy::name;
  static constexpr std::array aliases = BinaryCrossentropy::aliases;
  static constexpr const char* meaning =
      "Mean cross-entropy of independent yes-or-no outputs, without the smoothing of the loss.";
  static constexpr bool larger_is_better = false;

  template <class Key>
  static void options(const Key& key) {
    key("label_smoothing", &BinaryCrossentropyMetric::label_smoothing,
        "How far targets move towards 0.5: t becomes (1 - label_smoothing) t + 0.5 label_smoothing.",
        from_zero_to_below(1));
  }
  std::string adapt(const MetricSetting& loss) {
    if (loss.targets == LossTargets::class_numbers) {
      return "binary_crossentropy needs target values, but the targets of the loss are class numbers: use "
             "sparse_categorical_crossentropy";
    }
    return adapt_to(loss,
                    "binary_crossentropy needs probabilities, but the output has logits of classes: use "
                    "categorical_crossentropy");
  }

  template <class Row, class Target>
  TRAINCTL_KERNEL_FUNCTION float row(const Row& row, const Target& target) const {
    using Math = typename Row::Math;
    const float scale = 1.0f - label_smoothing, shift = 0.5f * label_smoothing;
    const bool logits = of_logits;
    const float sum = row.sum([=](std::int64_t k, float x) TRAINCTL_KERNEL_LAMBDA {
      const float t = scale * target(k) + shift;
      if (logits) return BinaryCrossentropy().template element<Math>(x, t);
      const float p = clipped_probability(x);
      return -t * Math::log(p) - (1 - t) * Math::log(1 - p);
    });
    return sum / static_cast<float>(row.values);
  }
};

}  // namespace trainctl
