// The cross-entropy of independent yes-or-no outputs as a metric. Logits: as the loss. Probabilities p, clipped to
// [1e-7, 1 - 1e-7], as in Keras: -t log(p) - (1 - t) log(1 - p).
#pragma once

#include <array>

#include "core/graph/ops/losses/binary_crossentropy.h"
#include "core/graph/ops/metrics/categorical_crossentropy.h"
#include "core/graph/ops/metrics/rule.h"

namespace trainctl {

struct BinaryCrossentropyMetric : MeanMetric {
  float label_smoothing = 0;
  bool of_logits = false;  // whether it reads logits instead of probabilities

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
    of_logits = loss.link == LossLink::sigmoid;
    if (loss.targets == LossTargets::class_numbers) {
      return "binary_crossentropy needs target values, but the targets of the loss are class numbers: use "
             "sparse_categorical_crossentropy";
    }
    const bool of_classes = loss.link == LossLink::softmax && !loss.linked;
    return of_classes ? "binary_crossentropy needs probabilities, but the output has logits of classes: use "
                        "categorical_crossentropy"
                      : "";
  }
  template <class Flag>
  void adapted(const Flag& flag) const {
    flag("of_logits", of_logits);
  }
  static constexpr bool of_predictions(const MetricSetting& loss) { return loss.link == LossLink::softmax; }

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
