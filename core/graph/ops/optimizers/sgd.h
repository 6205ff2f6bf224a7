// Stochastic gradient descent, with momentum and Nesterov's variant, as in PyTorch (and as in Keras if the learning
// rate is constant): v = momentum v + g; w -= rate (nesterov ? g + momentum v : v).
#pragma once

#include <array>

#include "core/graph/ops/optimizers/rule.h"

namespace trainctl {

struct Sgd {
  float momentum = 0;
  bool nesterov = false;

  static constexpr const char* name = "sgd";
  static constexpr const char* meaning = "Stochastic gradient descent: v = momentum v + g, w -= learning_rate v.";
  static constexpr const char* decay_meaning = l2_penalty;
  static constexpr double learning_rate = 0.01, weight_decay = 0;
  static constexpr std::array state_names{"momentum"};
  static constexpr unsigned always_kept = 0b0;
  static constexpr int factors = 0;
  static constexpr bool by_parameter = false;

  template <class Key>
  static void options(const Key& key) {
    key("momentum", &Sgd::momentum,
        "Share of the last velocity that is kept. As in PyTorch, learning_rate scales the whole velocity; Keras scales "
        "each gradient by the learning rate of its own step.",
        from_zero_to_below(1));
    key("nesterov", &Sgd::nesterov, "Nesterov's variant: w -= learning_rate (g + momentum v).", {});
  }
  unsigned kept() const { return momentum > 0 ? 0b1 : 0b0; }

  TRAINCTL_KERNEL_FUNCTION void step(const float*, float rate, float decay, float gradient, float& weight,
                                     float* states) const {
    const float g = gradient + decay * weight;
    const float v = momentum * states[0] + g;
    states[0] = v;
    weight -= rate * (nesterov ? g + momentum * v : v);
  }
};

}  // namespace trainctl
