// The divergence of Kullback and Leibler (1951) of the softmax of a row of logits from the targets: sum(t log(t /
// softmax(x))), with targets clipped to [1e-7, 1], as in Keras.
#pragma once

#include <array>

#include "core/graph/ops/losses/categorical_crossentropy.h"

namespace trainctl {

struct KlDivergence {
  static constexpr const char* name = "kl_divergence";
  static constexpr std::array aliases{"kld", "KLD", "kullback_leibler_divergence"};
  static constexpr const char* meaning =
      "Kullback-Leibler divergence of the predicted class probabilities from the target probabilities; class numbers "
      "become one-hot.";
  static constexpr LossTargets targets = LossTargets::distributions;
  static constexpr LossLink link = LossLink::softmax;
  static constexpr LossOver over = LossOver::classes;

  template <class Key>
  static void options(const Key&) {}
  Smoothing smoothing(std::int64_t) const { return {}; }
  static double chance(std::int64_t) { return 0; }

  // The sums over the row of e^(x - top), of the targets t, and of t (x - top - log(t)).
  template <class Row, class Target>
  TRAINCTL_KERNEL_FUNCTION static Sums<3> class_sums(const Row& row, const Target& target, float top) {
    return row.template sums<3>([=](std::int64_t k, float x) TRAINCTL_KERNEL_LAMBDA {
      const float t = clipped(target(k));
      return Sums<3>{{Row::exp(x - top), t, t * (x - top - Row::log(t))}};
    });
  }

  template <class Row, class Target>
  TRAINCTL_KERNEL_FUNCTION float row(const Row& row, const Target& target, float weight) const {
    const float top = row.largest();
    return softmax_loss(row, class_sums(row, target, top), top, weight,
                        [=](std::int64_t k) TRAINCTL_KERNEL_LAMBDA { return clipped(target(k)); });
  }

 private:
  TRAINCTL_KERNEL_FUNCTION static float clipped(float t) { return t < 1e-7f ? 1e-7f : t > 1.0f ? 1.0f : t; }
};

}  // namespace trainctl
