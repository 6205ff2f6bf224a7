// Adamax (Kingma and Ba, 2015), by Keras' formula: Adam with a decaying maximum of gradients instead of the average of
// their squares: u = max(beta_2 u, |g|); w -= rate m / (1 - beta_1^t) / (u + epsilon) in the t-th step.
#pragma once

#include <array>

#include "core/graph/ops/optimizers/rule.h"

namespace trainctl {

struct Adamax {
  float beta_1 = 0.9f;
  float beta_2 = 0.999f;
  float epsilon = 1e-7f;

  static constexpr const char* name = "adamax";
  static constexpr const char* meaning =
      "Adamax (Kingma and Ba, 2015), as in Keras: the average of gradients, divided by a decaying maximum of their "
      "sizes.";
  static constexpr const char* decay_meaning = l2_penalty;
  static constexpr double learning_rate = 0.001, weight_decay = 0;
  static constexpr std::array state_names{"m", "u"};
  static constexpr unsigned always_kept = 0b11;
  static constexpr int factors = 1;
  static constexpr bool by_parameter = false;

  template <class Key>
  static void options(const Key& key) {
    key("beta_1", &Adamax::beta_1, "Decay of the average of gradients.", from_zero_to_below(1));
    key("beta_2", &Adamax::beta_2, "Decay of the maximum of the sizes of gradients.", from_zero_to_below(1));
    key("epsilon", &Adamax::epsilon, "Added to the maximum.", more_than(0));
  }
  unsigned kept() const { return 0b11; }

  TRAINCTL_KERNEL_FUNCTION float factor(int, std::int64_t step) const { return bias_correction(beta_1, step); }
  TRAINCTL_KERNEL_FUNCTION void step(const float* factors, float rate, float decay, float gradient, float& weight,
                                     float* states) const {
    const float g = gradient + decay * weight, size = g < 0 ? -g : g, kept_size = beta_2 * states[1];
    states[0] = beta_1 * states[0] + (1.0f - beta_1) * g;
    states[1] = kept_size > size ? kept_size : size;
    weight -= rate * (states[0] * factors[0]) / (states[1] + epsilon);
  }
};

}  // namespace trainctl
