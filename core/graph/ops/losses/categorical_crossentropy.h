// Cross-entropy of the softmax of a row of logits: log(sum e^x) * sum(t) - sum(t x); its gradient is softmax(x) sum(t)
// - t. Targets are probabilities or class numbers. The z-loss (PaLM, Chowdhery et al., 2022) adds log(sum e^x)^2.
#pragma once

#include "core/graph/ops/losses/rule.h"

namespace trainctl {

// Returns the loss of a row, computed from its class sums, and writes the gradient. With `z_loss`, adds that number
// times log(sum e^x)^2, whose gradient is 2 z_loss log(sum e^x) softmax(x).
template <class Row, class Target>
TRAINCTL_KERNEL_FUNCTION float softmax_loss(const Row& row, const Sums<3>& sums, float top, float weight,
                                            const Target& target, float z_loss = 0) {
  const float below = Row::log(sums.of[0]), log_sum = top + below, z = z_loss == 0 ? 0.0f : z_loss * log_sum;
  if (row.trains()) {
    const float scale = (sums.of[1] + 2 * z) / sums.of[0];
    row.write([=](std::int64_t k, float x)
                  TRAINCTL_KERNEL_LAMBDA { return weight * (Row::exp(x - top) * scale - target(k)); });
  }
  return below * sums.of[1] - sums.of[2] + z * log_sum;
}

struct SoftmaxCrossentropy {
  float label_smoothing = 0;
  float z_loss = 0;

  static constexpr LossLink link = LossLink::softmax;
  static constexpr LossOver over = LossOver::classes;

  template <class Key>
  static void options(const Key& key) {
    key("label_smoothing", &SoftmaxCrossentropy::label_smoothing,
        "Share of the target's probability that is distributed evenly over all classes.", from_zero_to_below(1));
    key("z_loss", &SoftmaxCrossentropy::z_loss,
        "Weight of the mean square of log(sum e^x) over the classes' logits x, which is added to the loss and keeps "
        "the "
        "logits small, as in PaLM (there 1e-4).",
        at_least(0));
  }
  Smoothing smoothing(std::int64_t values) const {
    return {1.0f - label_smoothing, label_smoothing / static_cast<float>(values)};
  }
  static double chance(std::int64_t values) { return std::log(static_cast<double>(values)); }

  // The sums over the row of e^(x - top), of the targets t, and of t (x - top). The last two have one term if the row
  // says that the target is a single class.
  template <class Row, class Target>
  TRAINCTL_KERNEL_FUNCTION static Sums<3> class_sums(const Row& row, const Target& target, float top) {
    if constexpr (requires { row.is_single(target); }) {
      if (row.is_single(target)) {
        const float exponentials = row.template sums<1>([=](std::int64_t, float x) TRAINCTL_KERNEL_LAMBDA {
                                        return Sums<1>{{Row::exp(x - top)}};
                                      })
                                       .of[0];
        if (target.label < 0 || target.label >= row.values) return {{exponentials, 0.0f, 0.0f}};
        const float t = target(target.label);
        return {{exponentials, t, t * (row.at(target.label) - top)}};
      }
    }
    return row.template sums<3>([=](std::int64_t k, float x) TRAINCTL_KERNEL_LAMBDA {
      const float t = target(k);
      return Sums<3>{{Row::exp(x - top), t, t * (x - top)}};
    });
  }

  // Returns the loss of a row with these class sums, and writes the gradient times `weight`.
  template <class Row, class Target>
  TRAINCTL_KERNEL_FUNCTION float of_sums(const Row& row, const Target& target, const Sums<3>& sums, float top,
                                         float weight) const {
    return softmax_loss(row, sums, top, weight, target, z_loss);
  }

  template <class Row, class Target>
  TRAINCTL_KERNEL_FUNCTION float row(const Row& row, const Target& target, float weight) const {
    const float top = row.largest();
    return of_sums(row, target, class_sums(row, target, top), top, weight);
  }
};

struct SparseCategoricalCrossentropy : SoftmaxCrossentropy {
  static constexpr const char* name = "sparse_categorical_crossentropy";
  static constexpr const char* meaning = "Cross-entropy over classes; targets are class numbers.";
  static constexpr LossTargets targets = LossTargets::class_numbers;
};

struct CategoricalCrossentropy : SoftmaxCrossentropy {
  static constexpr const char* name = "categorical_crossentropy";
  static constexpr const char* meaning =
      "Cross-entropy over classes; targets are probabilities: class numbers become one-hot.";
  static constexpr LossTargets targets = LossTargets::distributions;
};

}  // namespace trainctl
