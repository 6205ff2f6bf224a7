// Focal loss (Lin et al., 2017) of the sigmoid p of each logit: the binary cross-entropy times q^gamma, with q = t (1 -
// p) + (1 - t) p the probability of the wrong answer, and with class balancing times t alpha + (1 - t) (1 - alpha).
#pragma once

#include "core/graph/ops/losses/binary_crossentropy.h"

namespace trainctl {

struct BinaryFocalCrossentropy {
  bool apply_class_balancing = false;
  float alpha = 0.25f;
  float gamma = 2;
  float label_smoothing = 0;

  static constexpr const char* name = "binary_focal_crossentropy";
  static constexpr const char* meaning =
      "Mean cross-entropy of independent yes-or-no outputs in which confident correct answers count less, for data in "
      "which one of the answers is rare.";
  static constexpr LossTargets targets = LossTargets::labels;
  static constexpr LossLink link = LossLink::sigmoid;
  static constexpr LossOver over = LossOver::elements;

  template <class Key>
  static void options(const Key& key) {
    key("apply_class_balancing", &BinaryFocalCrossentropy::apply_class_balancing,
        "Whether targets 1 are weighted by alpha and targets 0 by 1 - alpha.", Range{});
    key("alpha", &BinaryFocalCrossentropy::alpha, "Weight of targets 1 in class balancing.", between(0, 1));
    key("gamma", &BinaryFocalCrossentropy::gamma,
        "Exponent of the probability of the wrong answer; with 0, the loss is binary_crossentropy.", at_least(0));
    key("label_smoothing", &BinaryFocalCrossentropy::label_smoothing,
        "How far targets move towards 0.5: t becomes (1 - label_smoothing) t + 0.5 label_smoothing.",
        from_zero_to_below(1));
  }
  Smoothing smoothing(std::int64_t) const { return {1.0f - label_smoothing, 0.5f * label_smoothing}; }
  double chance(std::int64_t) const {
    return apply_class_balancing ? 0 : std::pow(0.5, static_cast<double>(gamma)) * std::log(2.0);
  }

  template <class Math>
  TRAINCTL_KERNEL_FUNCTION float element(float x, float t) const {
    const float wrong = t * Math::sigmoid(-x) + (1.0f - t) * Math::sigmoid(x);
    return balance(t) * Math::power(wrong, gamma) * BinaryCrossentropy{}.template element<Math>(x, t);
  }
  template <class Math>
  TRAINCTL_KERNEL_FUNCTION float slope(float x, float t) const {
    const float yes = Math::sigmoid(x), no = Math::sigmoid(-x), wrong = t * no + (1.0f - t) * yes;
    const float turn = wrong > 0 ? gamma * (1.0f - 2.0f * t) * yes * no / wrong : 0.0f;
    const float entropy = BinaryCrossentropy{}.template element<Math>(x, t);
    return balance(t) * Math::power(wrong, gamma) * (turn * entropy + yes - t);
  }

 private:
  TRAINCTL_KERNEL_FUNCTION float balance(float t) const {
    return apply_class_balancing ? t * alpha + (1.0f - t) * (1.0f - alpha) : 1.0f;
  }
};

}  // namespace trainctl
