// FTRL-Proximal (McMahan et al., 2013: "Ad click prediction"), by Keras' formula and with Keras' names and defaults.
// With s = initial_accumulator_value + the sum of g g, p = -learning_rate_power, and s0 = s before the step:
// z += g + 2 l2_shrinkage w - (s^p - s0^p) / rate w; w = (clip(z, -l1, l1) - z) / ((s^p + beta) / rate + 2 l2).
#pragma once

#include <array>

#include "core/graph/ops/optimizers/rule.h"

namespace trainctl {

struct Ftrl {
  float learning_rate_power = -0.5f;
  float initial_accumulator_value = 0.1f;
  float l1_regularization_strength = 0;
  float l2_regularization_strength = 0;
  float l2_shrinkage_regularization_strength = 0;
  float beta = 0;

  static constexpr const char* name = "ftrl";
  static constexpr const char* meaning =
      "FTRL-Proximal (McMahan et al., 2013), as in Keras: for large sparse linear models, where its L1 regularization "
      "makes parameters exactly 0. Each step computes a parameter from all gradients so far, so that its initial value "
      "has little effect. A step at the learning rate 0 changes nothing.";
  static constexpr const char* decay_meaning = l2_penalty;
  static constexpr double learning_rate = 0.001, weight_decay = 0;
  static constexpr std::array state_names{"sum_of_squares", "linear"};  // the sum does not include the initial value
  static constexpr unsigned always_kept = 0b11;
  static constexpr int factors = 0;
  static constexpr bool by_parameter = false;

  template <class Key>
  static void options(const Key& key) {
    key("learning_rate_power", &Ftrl::learning_rate_power,
        "The power of the sum of squared gradients by which the learning rate of a parameter decreases; 0 leaves it "
        "constant.",
        between(-1, 0));
    key("initial_accumulator_value", &Ftrl::initial_accumulator_value, "Initial value of the sum of squared gradients.",
        more_than(0));
    key("l1_regularization_strength", &Ftrl::l1_regularization_strength,
        "Factor of the L1 norm of the parameters in the objective.", at_least(0));
    key("l2_regularization_strength", &Ftrl::l2_regularization_strength,
        "Factor of the squared L2 norm of the parameters in the objective, which stabilizes the steps.", at_least(0));
    key("l2_shrinkage_regularization_strength", &Ftrl::l2_shrinkage_regularization_strength,
        "Factor of the squared L2 norm of the parameters in the loss: 2 l2_shrinkage_regularization_strength w is "
        "added to the gradient, but not to the sum of squared gradients.",
        at_least(0));
    key("beta", &Ftrl::beta, "The beta of the paper, which is added to the root of the sum of squared gradients.",
        at_least(0));
  }
  unsigned kept() const { return 0b11; }

  TRAINCTL_KERNEL_FUNCTION void step(const float*, float rate, float decay, float gradient, float& weight,
                                     float* states) const {
    if (rate == 0) return;  // the formula divides by the learning rate
    const float g = gradient + decay * weight, before = initial_accumulator_value + states[0];
    states[0] += g * g;
    const float root = power_of(initial_accumulator_value + states[0]);
    const float linear = states[1] + g + 2.0f * l2_shrinkage_regularization_strength * weight -
                         (root - power_of(before)) / rate * weight;
    states[1] = linear;
    const float l1 = l1_regularization_strength, clipped = linear < -l1 ? -l1 : linear > l1 ? l1 : linear;
    weight = (clipped - linear) / ((root + beta) / rate + 2.0f * l2_regularization_strength);
  }

 private:
  TRAINCTL_KERNEL_FUNCTION float power_of(float sum) const {
    return learning_rate_power == -0.5f ? sqrtf(sum) : powf(sum, -learning_rate_power);
  }
};

}  // namespace trainctl
