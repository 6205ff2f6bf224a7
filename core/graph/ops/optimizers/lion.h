// Lion (Chen et al., 2023: "Symbolic discovery of optimization algorithms"), with Keras' names and defaults:
// w -= rate (sign(beta_1 m + (1 - beta_1) g) + weight_decay w); m = beta_2 m + (1 - beta_2) g.
#pragma once

#include <array>

#include "core/graph/ops/optimizers/rule.h"

namespace trainctl {

struct Lion {
  float beta_1 = 0.9f;
  float beta_2 = 0.99f;

  static constexpr const char* name = "lion";
  static constexpr const char* meaning =
      "Lion (Chen et al., 2023): steps of equal size in all elements, by the sign of a moving average. It needs a "
      "smaller learning rate and a larger weight decay than adamw.";
  static constexpr const char* decay_meaning =
      "Decoupled decay: w -= learning_rate weight_decay w in addition to Lion's step.";
  static constexpr double learning_rate = 0.001, weight_decay = 0;
  static constexpr std::array state_names{"m"};
  static constexpr unsigned always_kept = 0b1;
  static constexpr int factors = 0;
  static constexpr bool by_parameter = false;

  template <class Key>
  static void options(const Key& key) {
    key("beta_1", &Lion::beta_1,
        "Weight of the average in the sum whose sign is the step; the gradient has the weight 1 - beta_1.",
        from_zero_to_below(1));
    key("beta_2", &Lion::beta_2, "Decay of the average of gradients.", from_zero_to_below(1));
  }
  unsigned kept() const { return 0b1; }

  TRAINCTL_KERNEL_FUNCTION void step(const float*, float rate, float decay, float gradient, float& weight,
                                     float* states) const {
    const float u = beta_1 * states[0] + (1.0f - beta_1) * gradient;
    states[0] = beta_2 * states[0] + (1.0f - beta_2) * gradient;
    const float sign = (u > 0 ? 1.0f : 0.0f) - (u < 0 ? 1.0f : 0.0f);
    weight = weight * (1.0f - rate * decay) - rate * sign;
  }
};

}  // namespace trainctl
