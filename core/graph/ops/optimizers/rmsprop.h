// RMSprop (Hinton's lecture 6e, 2012; centered: Graves, 2013), by PyTorch's formula with Keras' names and defaults:
// s = rho s + (1 - rho) g g; u = g / (sqrt(s [- a a]) + epsilon); w -= rate (momentum m + u).
// Keras divides by sqrt(s [- a a] + epsilon) instead: epsilon_in_root.
#pragma once

#include <array>

#include "core/graph/ops/optimizers/rule.h"

namespace trainctl {

struct RmsProp {
  float rho = 0.9f;
  float momentum = 0;
  float epsilon = 1e-7f;
  bool centered = false;
  bool epsilon_in_root = false;

  static constexpr const char* name = "rmsprop";
  static constexpr const char* meaning =
      "RMSprop: the gradient divided by the root of a moving average of its squares, as in PyTorch. `epsilon_in_root: "
      "true` makes it Keras' RMSprop.";
  static constexpr const char* decay_meaning = l2_penalty;
  static constexpr double learning_rate = 0.001, weight_decay = 0;
  static constexpr std::array state_names{"mean_square", "momentum", "mean_gradient"};
  static constexpr unsigned always_kept = 0b001;
  static constexpr int factors = 0;
  static constexpr bool by_parameter = false;

  template <class Key>
  static void options(const Key& key) {
    key("rho", &RmsProp::rho, "Decay of the average of squared gradients.", from_zero_to_below(1));
    key("momentum", &RmsProp::momentum,
        "Share of the last step that is added to the next step. As in PyTorch, learning_rate scales the whole sum; "
        "Keras scales each summand by the learning rate of its own step.",
        from_zero_to_below(1));
    key("epsilon", &RmsProp::epsilon, "Added to the root of the average, or with epsilon_in_root to the average.",
        more_than(0));
    key("centered", &RmsProp::centered,
        "Whether the variance of the gradient is used instead of the average of its squares.", {});
    key("epsilon_in_root", &RmsProp::epsilon_in_root, epsilon_in_root_meaning, {});
  }
  unsigned kept() const { return 0b001 | (momentum > 0 ? 0b010 : 0) | (centered ? 0b100 : 0); }

  TRAINCTL_KERNEL_FUNCTION void step(const float*, float rate, float decay, float gradient, float& weight,
                                     float* states) const {
    const float g = gradient + decay * weight;
    states[0] = rho * states[0] + (1.0f - rho) * g * g;
    states[2] = rho * states[2] + (1.0f - rho) * g;
    const float variance = states[0] - (centered ? states[2] * states[2] : 0.0f);
    states[1] = momentum * states[1] + g / root_with_epsilon(variance > 0 ? variance : 0.0f, epsilon, epsilon_in_root);
    weight -= rate * states[1];
  }
};

}  // namespace trainctl
