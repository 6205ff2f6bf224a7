// Adam (Kingma and Ba, 2015) with bias correction, and AdamW (Loshchilov and Hutter, 2019), with weight decay that is
// decoupled from the gradient: w -= rate m_hat / (sqrt(v_hat) + epsilon), with m_hat = m / (1 - beta_1^t) and v_hat = v
// / (1 - beta_2^t) in the t-th step. Keras adds epsilon to sqrt(v) instead: epsilon_hat.
// With amsgrad (Reddi et al., 2018), the largest v of all steps so far replaces v.
#pragma once

#include <array>

#include "core/graph/ops/optimizers/rule.h"

namespace trainctl {

// The moving averages of gradients (m) and of squared gradients (v) in Adam and its variants.
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
    key("epsilon", &AdamMoments::epsilon, "Added to the root of the second average after its bias correction.",
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

// The step of Adam and AdamW, with epsilon added before or after the bias correction.
struct AdamStep : AdamMoments {
  bool epsilon_hat = false;
  bool amsgrad = false;

  static constexpr std::array state_names{"m", "v", "largest_v"};
  static constexpr int factors = 3;
  static constexpr bool by_parameter = false;

  template <class Key>
  static void options(const Key& key) {
    AdamMoments::options(key);
    key("epsilon_hat", &AdamStep::epsilon_hat,
        "Whether epsilon is added before the bias correction, as in Keras (the epsilon hat of Adam's paper); the same "
        "epsilon then has more effect in the first steps. By default it is added after the correction, as in the "
        "algorithm of the paper and in PyTorch.",
        {});
    key("amsgrad", &AdamStep::amsgrad,
        "Whether the step is divided by the root of the largest second average of all steps so far (Reddi et al., "
        "2018), so that the learning rate of a parameter never grows. It needs one more state.",
        {});
  }
  unsigned kept() const { return amsgrad ? 0b111 : 0b011; }

  // Adding epsilon before the correction is the same as adding epsilon / sqrt(1 - beta_2^t) after it.
  TRAINCTL_KERNEL_FUNCTION float factor(int which, std::int64_t step) const {
    if (which < 2) return AdamMoments::factor(which, step);
    return epsilon_hat ? epsilon * sqrtf(bias_correction(beta_2, step)) : epsilon;
  }
  // The step, which is subtracted from the weight. Without amsgrad, the third state is 0 and the second is the maximum.
  TRAINCTL_KERNEL_FUNCTION float length(const float* factors, float rate, float* states) const {
    states[2] = states[1] < states[2] ? states[2] : states[1];
    return rate * (states[0] * factors[0]) / (sqrtf(states[2] * factors[1]) + factors[2]);
  }
};

struct Adam : AdamStep {
  static constexpr const char* name = "adam";
  static constexpr const char* meaning =
      "Adam (Kingma and Ba, 2015), with bias correction, as in PyTorch. `epsilon_hat: true` makes it Keras' Adam.";
  static constexpr const char* decay_meaning = l2_penalty;
  static constexpr double weight_decay = 0;

  TRAINCTL_KERNEL_FUNCTION void step(const float* factors, float rate, float decay, float gradient, float& weight,
                                     float* states) const {
    average(gradient + decay * weight, states);
    weight -= length(factors, rate, states);
  }
};

struct AdamW : AdamStep {
  static constexpr const char* name = "adamw";
  static constexpr const char* meaning = "Adam with decoupled weight decay (Loshchilov and Hutter, 2019).";
  static constexpr const char* decay_meaning =
      "Decoupled decay: w -= learning_rate weight_decay w in addition to Adam's step.";
  static constexpr double weight_decay = 0.004;

  TRAINCTL_KERNEL_FUNCTION void step(const float* factors, float rate, float decay, float gradient, float& weight,
                                     float* states) const {
    average(gradient, states);
    weight = weight * (1.0f - rate * decay) - length(factors, rate, states);
  }
};

}  // namespace trainctl
