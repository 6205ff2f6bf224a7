// Adadelta (Zeiler, 2012), as in Keras and PyTorch, with Keras' names and defaults:
// s = rho s + (1 - rho) g g; u = g sqrt(d + epsilon) / sqrt(s + epsilon); d = rho d + (1 - rho) u u; w -= rate u.
#pragma once

#include <array>

#include "core/graph/ops/optimizers/rule.h"

namespace trainctl {

struct Adadelta {
  float rho = 0.95f;
  float epsilon = 1e-7f;

  static constexpr const char* name = "adadelta";
  static constexpr const char* meaning =
      "Adadelta (Zeiler, 2012): the gradient, scaled to the size of previous steps; the paper uses the learning rate "
      "1.";
  static constexpr const char* decay_meaning = l2_penalty;
  static constexpr double learning_rate = 0.001, weight_decay = 0;
  static constexpr std::array state_names{"mean_square", "mean_square_step"};
  static constexpr unsigned always_kept = 0b11;
  static constexpr int factors = 0;
  static constexpr bool by_parameter = false;

  template <class Key>
  static void options(const Key& key) {
    key("rho", &Adadelta::rho, "Decay of the averages of squared gradients and of squared steps.",
        from_zero_to_below(1));
    key("epsilon", &Adadelta::epsilon, "Added to both averages before their square roots are taken.", more_than(0));
  }
  unsigned kept() const { return 0b11; }

  TRAINCTL_KERNEL_FUNCTION void step(const float*, float rate, float decay, float gradient, float& weight,
                                     float* states) const {
    const float g = gradient + decay * weight;
    states[0] = rho * states[0] + (1.0f - rho) * g * g;
    const float u = g * sqrtf(states[1] + epsilon) / sqrtf(states[0] + epsilon);
    states[1] = rho * states[1] + (1.0f - rho) * u * u;
    weight -= rate * u;
  }
};

}  // namespace trainctl
