// Nadam (Dozat, 2016), by Keras' formula: Adam with Nesterov's momentum. The momentum grows with the step t = 1, 2,
// ...: u_t = beta_1 (1 - 0.5 0.96^t), and P_t is the product of u_1 to u_t.
// m_hat = u_(t+1) m / (1 - P_(t+1)) + (1 - u_t) g / (1 - P_t); w -= rate m_hat / (sqrt(v_hat) + epsilon).
#pragma once

#include "core/graph/ops/optimizers/adam.h"

namespace trainctl {

struct Nadam : AdamMoments {
  static constexpr const char* name = "nadam";
  static constexpr const char* meaning =
      "Nadam (Dozat, 2016): Adam with Nesterov's momentum, which grows to beta_1 during training, as in Keras.";
  static constexpr const char* decay_meaning = l2_penalty;
  static constexpr double weight_decay = 0;
  static constexpr int factors = 3;
  static constexpr bool by_parameter = false;

  // The factors of v, of m and of the gradient.
  TRAINCTL_KERNEL_FUNCTION float factor(int which, std::int64_t step) const {
    if (which == 0) return bias_correction(beta_2, step);
    if (which == 1) return static_cast<float>(momentum(step + 1) / (1 - product(step + 1)));
    return static_cast<float>((1 - momentum(step)) / (1 - product(step)));
  }
  TRAINCTL_KERNEL_FUNCTION void step(const float* factors, float rate, float decay, float gradient, float& weight,
                                     float* states) const {
    const float g = gradient + decay * weight;
    average(g, states);
    weight -= rate * (states[0] * factors[1] + g * factors[2]) / (sqrtf(states[1] * factors[0]) + epsilon);
  }

 private:
  TRAINCTL_KERNEL_FUNCTION double momentum(std::int64_t step) const {
    return beta_1 * (1 - 0.5 * pow(0.96, static_cast<double>(step + 1)));
  }
  // The product of the momenta of steps 0 to `step`. The loop ends when the product, or 0.96^t, is negligible compared
  // to 1.
  TRAINCTL_KERNEL_FUNCTION double product(std::int64_t step) const {
    double product = pow(static_cast<double>(beta_1), static_cast<double>(step + 1)), power = 1;
    for (int k = 0; k <= step && k < 1000 && product > 1e-12; ++k) {
      power *= 0.96;
      product *= 1 - 0.5 * power;
    }
    return product;
  }
};

}  // namespace trainctl
