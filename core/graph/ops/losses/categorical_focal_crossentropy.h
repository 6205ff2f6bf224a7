// Focal loss (Lin et al., 2017) of the softmax p of a row of logits: alpha sum(t (1 - p)^gamma (-log p)). With h =
// gamma p (1 - p)^(gamma - 1) log p - (1 - p)^gamma its gradient is alpha (t h - p sum(t h)).
#pragma once

#include "core/graph/ops/losses/rule.h"

namespace trainctl {

struct SoftmaxFocalCrossentropy {
  float alpha = 0.25f;
  float gamma = 2;
  float label_smoothing = 0;

  static constexpr LossLink link = LossLink::softmax;
  static constexpr LossOver over = LossOver::rows;

  template <class Key>
  static void options(const Key& key) {
    key("alpha", &SoftmaxFocalCrossentropy::alpha, "Factor of the loss.", more_than(0));
    key("gamma", &SoftmaxFocalCrossentropy::gamma,
        "Exponent of 1 - p; with 0, the loss is alpha times the cross-entropy.", at_least(0));
    key("label_smoothing", &SoftmaxFocalCrossentropy::label_smoothing,
        "Share of the target's probability that is distributed evenly over all classes.", from_zero_to_below(1));
  }
  Smoothing smoothing(std::int64_t values) const {
    return {1.0f - label_smoothing, label_smoothing / static_cast<float>(values)};
  }
  double chance(std::int64_t values) const {
    const auto classes = static_cast<double>(values);
    return static_cast<double>(alpha) * std::pow(1 - 1 / classes, static_cast<double>(gamma)) * std::log(classes);
  }

  template <class Row, class Target>
  TRAINCTL_KERNEL_FUNCTION float row(const Row& row, const Target& target, float weight) const {
    const float top = row.largest();
    const float total =
        row.template sums<1>([=](std::int64_t, float x) TRAINCTL_KERNEL_LAMBDA { return Sums<1>{{Row::exp(x - top)}}; })
            .of[0];
    const float log_total = Row::log(total), exponent = gamma;
    // The sums of the losses and of t h.
    const Sums<2> sums = row.template sums<2>([=](std::int64_t k, float x) TRAINCTL_KERNEL_LAMBDA {
      const float p = Row::exp(x - top) / total, log_p = x - top - log_total, t = target(k);
      return Sums<2>{{-t * Row::power(1.0f - p, exponent) * log_p, t * h<Row>(p, log_p, exponent)}};
    });
    if (row.trains()) {
      const float scale = weight * alpha, all = sums.of[1];
      row.write([=](std::int64_t k, float x) TRAINCTL_KERNEL_LAMBDA {
        const float p = Row::exp(x - top) / total;
        return scale * (target(k) * h<Row>(p, x - top - log_total, exponent) - p * all);
      });
    }
    return alpha * sums.of[0];
  }

 private:
  template <class Row>
  TRAINCTL_KERNEL_FUNCTION static float h(float p, float log_p, float gamma) {
    const float rest = 1.0f - p, turn = rest > 0 ? gamma * p * log_p / rest : 0.0f;
    return Row::power(rest, gamma) * (turn - 1.0f);
  }
};

struct SparseCategoricalFocalCrossentropy : SoftmaxFocalCrossentropy {
  static constexpr const char* name = "sparse_categorical_focal_crossentropy";
  static constexpr const char* meaning =
      "Cross-entropy over classes in which confident correct answers count less; targets are class numbers.";
  static constexpr LossTargets targets = LossTargets::class_numbers;
};

struct CategoricalFocalCrossentropy : SoftmaxFocalCrossentropy {
  static constexpr const char* name = "categorical_focal_crossentropy";
  static constexpr const char* meaning =
      "Cross-entropy over classes in which confident correct answers count less; targets are probabilities: class "
      "numbers become one-hot.";
  static constexpr LossTargets targets = LossTargets::distributions;
};

}  // namespace trainctl
