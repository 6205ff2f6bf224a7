// Adagrad (Duchi et al., 2011), by PyTorch's formula with Keras' names and defaults:
// s += g g; w -= rate g / (sqrt(initial_accumulator_value + s) + epsilon).
#pragma once

#include <array>

#include "core/graph/ops/optimizers/rule.h"

namespace trainctl {

struct Adagrad {
  float initial_accumulator_value = 0.1f;
  float epsilon = 1e-7f;

  static constexpr const char* name = "adagrad";
  static constexpr const char* meaning =
      "Adagrad (Duchi et al., 2011): the gradient over the root of the sum of all its squares.";
  static constexpr const char* decay_meaning = l2_penalty;
  static constexpr double learning_rate = 0.001, weight_decay = 0;
  static constexpr std::array state_names{"sum_of_squares"};  // without the initial value
  static constexpr unsigned always_kept = 0b1;
  static constexpr int factors = 0;
  static constexpr bool by_parameter = false;

  template <class Key>
  static void options(const Key& key) {
    key("initial_accumulator_value", &Adagrad::initial_accumulator_value, "What the sum of squares begins with.",
        at_least(0));
    key("epsilon", &Adagrad::epsilon, "Added to the root of the sum, as in PyTorch; Keras adds it under the root.",
        more_than(0));
  }
  unsigned kept() const { return 0b1; }

  TRAINCTL_KERNEL_FUNCTION void step(const float*, float rate, float decay, float gradient, float& weight,
                                     float* states) const {
    const float g = gradient + decay * weight;
    states[0] += g * g;
    weight -= rate * g / (sqrtf(initial_accumulator_value + states[0]) + epsilon);
  }
};

}  // namespace trainctl
