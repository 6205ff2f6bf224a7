// Adam (Kingma and Ba, 2015) with bias correction, and AdamW (Loshchilov and Hutter, 2019), whose weight decay is
// decoupled from the gradient: w -= rate m_hat / (sqrt(v_hat) + epsilon).
#pragma once

#include <array>

#include "core/graph/ops/optimizers/rule.h"

namespace trainctl {

// The averages that Adam and its relatives keep of gradients (m) and of their squares (v).
struct AdamMoments {
  float beta_1 = 0.9f;
  float beta_2 = 0.999f;
  float epsilon = 1e-7f;

  static constexpr double learning_rate = 0.001;
  static constexpr std::array state_names{"m", "v"};
  static constexpr unsigned always_kept = 0b11;
  static constexpr int factors = 2;

  template <class Key>
  static void options(const Key& key) {
    key("beta_1", &AdamMoments::beta_1, "Decay of the average of gradients.", from_zero_to_below(1));
    key("beta_2", &AdamMoments::beta_2, "Decay of the average of squared gradients.", from_zero_to_below(1));
    key("epsilon", &AdamMoments::epsilon,
        "Added to the root of the second average, behind its bias correction: as in PyTorch. Keras adds it before the "
        "correction, where the same number weighs more in the first steps.",
        more_than(0));
  }
  unsigned kept() const { return 0b11; }

  TRAINCTL_KERNEL_FUNCTION float factor(int which, std::int64_t step) const {
    return bias_correction(which == 0 ? beta_1 : beta_2, step);
  }
  TRAINCTL_KERNEL_FUNCTION void average(float gradient, float* states) const {
    states[0] = beta_1 * states[0] + (1.0f - beta_1) * gradient;
    states[1] = beta_2 * states[1] + (1.0f - beta_2) * gradient * gradient;
  }
};

struct Adam : AdamMoments {
  static constexpr const char* name = "adam";
  static constexpr const char* meaning = "Adam (Kingma and Ba, 2015), with bias correction.";
  static constexpr const char* decay_meaning = "L2 penalty: weight_decay w is added to the gradient.";
  static constexpr double weight_decay = 0;
  static constexpr bool by_parameter = false;

  TRAINCTL_KERNEL_FUNCTION void step(const float* factors, float rate, float decay, float gradient, float& weight,
                                     float* states) const {
    average(gradient + decay * weight, states);
    weight = weight - rate * (states[0] * factors[0]) / (sqrtf(states[1] * factors[1]) + epsilon);
  }
};

struct AdamW : AdamMoments {
  static constexpr const char* name = "adamw";
  static constexpr const char* meaning = "Adam with decoupled weight decay (Loshchilov and Hutter, 2019).";
  static constexpr const char* decay_meaning = "Decoupled decay: w -= learning_rate weight_decay w beside Adam's step.";
  static constexpr double weight_decay = 0.004;
  static constexpr bool by_parameter = false;

  TRAINCTL_KERNEL_FUNCTION void step(const float* factors, float rate, float decay, float gradient, float& weight,
                                     float* states) const {
    average(gradient, states);
    const float kept = weight * (1.0f - rate * decay);
    weight = kept - rate * (states[0] * factors[0]) / (sqrtf(states[1] * factors[1]) + epsilon);
  }
};

}  // namespace trainctl
