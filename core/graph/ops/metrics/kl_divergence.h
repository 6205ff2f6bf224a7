// The divergence of Kullback and Leibler as a metric: sum(t log(t / p)), with targets t and probabilities p clipped to
// [1e-7, 1], as in Keras. Log p of logits x is x - log(sum e^x), which is not clipped, as in the loss.
#pragma once

#include <array>

#include "core/graph/ops/losses/kl_divergence.h"
#include "core/graph/ops/metrics/probabilities.h"

namespace trainctl {

struct KlDivergenceMetric : ProbabilityMetric<LossLink::softmax> {
  static constexpr const char* name = KlDivergence::name;
  static constexpr std::array aliases = KlDivergence::aliases;
  static constexpr const char* meaning =
      "Mean Kullback-Leibler divergence of the predicted class probabilities from the target probabilities.";
  static constexpr bool larger_is_better = false;

  template <class Key>
  static void options(const Key&) {}
  std::string adapt(const MetricSetting& loss) {
    if (loss.targets == LossTargets::class_numbers) {
      return "kl_divergence needs target probabilities, but the targets of the loss are class numbers: use "
             "sparse_categorical_crossentropy, which is equal for class numbers";
    }
    return adapt_to(loss,
                    "kl_divergence needs probabilities, but the output has logits of yes-or-no answers: use "
                    "binary_crossentropy");
  }

  template <class Row, class Target>
  TRAINCTL_KERNEL_FUNCTION float row(const Row& row, const Target& target) const {
    using Math = typename Row::Math;
    const bool logits = of_logits;
    const float log_sum = logits ? log_sum_exp(row) : 0.0f;
    return row.sum([=](std::int64_t k, float x) TRAINCTL_KERNEL_LAMBDA {
      const float t = clipped(target(k));
      return t * (Math::log(t) - (logits ? x - log_sum : Math::log(clipped(x))));
    });
  }

 private:
  TRAINCTL_KERNEL_FUNCTION static float clipped(float p) { return p < 1e-7f ? 1e-7f : p > 1.0f ? 1.0f : p; }
};

}  // namespace trainctl
