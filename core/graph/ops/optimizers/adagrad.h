// Adagrad (Duchi et al., 2011), by PyTorch's formula with Keras' names and defaults:
// s += g g; w -= rate g / (sqrt(initial_accumulator_value + s) + epsilon).
// Keras divides by sqrt(initial_accumulator_value + s + epsilon) instead: epsilon_in_root.
#pragma once

#include <array>

#include "core/graph/ops/optimizers/rule.h"

namespace trainctl {

struct Adagrad {
  float initial_accumulator_value = 0.1f;
  float epsilon = 1e-7f;
  bool epsilon_in_root = false;

  static constexpr const char* name = "adagrad";
  static constexpr const char* meaning =
      "Adagrad (Duchi et al., 2011): the gradient divided by the root of the sum of all its squares, as in PyTorch. "
      "`epsilon_in_root: true` makes it Keras' Adagrad.";
  static constexpr const char* decay_meaning = l2_penalty;
  static constexpr double learning_rate = 0.001, weight_decay = 0;
  static constexpr std::array state_names{"sum_of_squares"};  // does not include the initial value
  static constexpr unsigned always_kept = 0b1;
  static constexpr int factors = 0;
  static constexpr bool by_parameter = false;

  template <class Key>
  static void options(const Key& key) {
    key("initial_accumulator_value", &Adagrad::initial_accumulator_value, "Initial value of the sum of squares.",
        at_least(0));
    key("epsilon", &Adagrad::epsilon, "Added to the root of the sum, or with epsilon_in_root to the sum.",
        more_than(0));
    key("epsilon_in_root", &Adagrad::epsilon_in_root, epsilon_in_root_meaning, {});
  }
  unsigned kept() const { return 0b1; }

  TRAINCTL_KERNEL_FUNCTION void step(const float*, float rate, float decay, float gradient, float& weight,
                                     float* states) const {
    const float g = gradient + decay * weight;
    states[0] += g * g;
    weight -= rate * g / root_with_epsilon(initial_accumulator_value + states[0], epsilon, epsilon_in_root);
  }
};

}  // namespace trainctl
