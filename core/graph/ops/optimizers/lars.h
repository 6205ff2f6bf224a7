// LARS (You et al., 2017: "Large batch training of convolutional networks"), the paper's algorithm 1: momentum, with a
// learning rate for each parameter: local = trust_coefficient |w| / (|g| + weight_decay |w|);
// v = momentum v + rate local (g + weight_decay w); w -= v.
#pragma once

#include <array>

#include "core/graph/ops/optimizers/rule.h"

namespace trainctl {

struct Lars {
  float momentum = 0.9f;
  float trust_coefficient = 0.001f;

  static constexpr const char* name = "lars";
  static constexpr const char* meaning =
      "LARS (You et al., 2017), for large batches: momentum, with a step for each parameter whose norm is "
      "learning_rate trust_coefficient times the norm of the parameter. Parameters without weight decay "
      "(exclude_from_weight_decay) use the learning rate unchanged.";
  static constexpr const char* decay_meaning =
      "L2 penalty: weight_decay w is added to the gradient, and its norm to the norm by which the step is divided.";
  static constexpr double learning_rate = 1, weight_decay = 0;
  static constexpr std::array state_names{"momentum"};
  static constexpr unsigned always_kept = 0b0;
  static constexpr int factors = 0;
  static constexpr bool by_parameter = true;

  template <class Key>
  static void options(const Key& key) {
    key("momentum", &Lars::momentum,
        "Share of the last step that is added to the next step. As in the paper, each step keeps its own learning "
        "rate.",
        from_zero_to_below(1));
    key("trust_coefficient", &Lars::trust_coefficient,
        "Norm of a step relative to the norm of its parameter, if learning_rate is 1.", more_than(0));
  }
  unsigned kept() const { return momentum > 0 ? 0b1 : 0b0; }

  TRAINCTL_KERNEL_FUNCTION float direction(const float*, float, float gradient, float, float*) const {
    return gradient;
  }
  // The factor of the parameter's learning rate; 1 if either norm is 0, so that a parameter that is initialized to zero
  // can change.
  TRAINCTL_KERNEL_FUNCTION float ratio(bool no_decay, float decay, float weight_norm, float gradient_norm) const {
    if (no_decay || !(weight_norm > 0 && gradient_norm > 0)) return 1.0f;
    return trust_coefficient * weight_norm / (gradient_norm + decay * weight_norm);
  }
  TRAINCTL_KERNEL_FUNCTION void apply(const float*, float rate, float decay, float gradient, float& weight,
                                      float* states) const {
    states[0] = momentum * states[0] + rate * (gradient + decay * weight);
    weight -= states[0];
  }
};

}  // namespace trainctl
