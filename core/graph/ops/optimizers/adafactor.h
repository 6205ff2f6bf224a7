// Adafactor (Shazeer and Stern, 2018), by Keras' formula: of the average of the squared gradients of a matrix, only the
// means over rows and columns are stored, and steps are proportional to the root mean square of the parameter.
#pragma once

#include <array>

#include "core/graph/ops/optimizers/rule.h"

namespace trainctl {

struct Adafactor {
  float beta_2_decay = -0.8f;
  float epsilon_1 = 1e-30f;
  float epsilon_2 = 1e-3f;
  float clip_threshold = 1;
  bool relative_step = true;

  static constexpr const char* name = "adafactor";
  static constexpr const char* meaning =
      "Adafactor (Shazeer and Stern, 2018) by Keras' formula: like rmsprop, with a state for each row and column of a "
      "matrix instead of each element, and steps proportional to the root mean square of the parameter.";
  static constexpr const char* decay_meaning =
      "Decoupled decay, as in Keras: w -= learning_rate weight_decay w before each step.";
  static constexpr double learning_rate = 0.001, weight_decay = 0;
  static constexpr std::array state_names{"second_moment"};
  static constexpr unsigned always_kept = 0b1;
  static constexpr int factors = 2;
  static constexpr bool by_parameter = true, factored = true;

  template <class Key>
  static void options(const Key& key) {
    key("beta_2_decay", &Adafactor::beta_2_decay,
        "In step t = 1, 2, ..., the decay of the average of squared gradients is 1 - t^beta_2_decay.", between(-1, 0));
    key("epsilon_1", &Adafactor::epsilon_1, "Added to each squared gradient.", at_least(0));
    key("epsilon_2", &Adafactor::epsilon_2,
        "Lower limit of the root mean square of a parameter to which its steps are proportional.", at_least(0));
    key("clip_threshold", &Adafactor::clip_threshold,
        "Upper limit of the root mean square of a step before it is scaled by the learning rate and the parameter.",
        more_than(0));
    key("relative_step", &Adafactor::relative_step,
        "Whether the learning rate is limited to 1 / sqrt(t) in step t = 1, 2, ...", {});
  }
  unsigned kept() const { return 0b1; }

  // Factor 0: the decay of the average of squared gradients; factor 1: the limit of the learning rate.
  TRAINCTL_KERNEL_FUNCTION float factor(int i, std::int64_t step) const {
    const auto t = static_cast<double>(step + 1);
    return static_cast<float>(i == 0 ? 1 - pow(t, static_cast<double>(beta_2_decay)) : 1 / sqrt(t));
  }
  TRAINCTL_KERNEL_FUNCTION float square(float gradient) const { return gradient * gradient + epsilon_1; }
  TRAINCTL_KERNEL_FUNCTION float average(const float* factors, float kept, float mean) const {
    return factors[0] * kept + (1.0f - factors[0]) * mean;
  }
  TRAINCTL_KERNEL_FUNCTION float direction(float gradient, float row, float column) const {
    return gradient / sqrtf(row * column);
  }
  TRAINCTL_KERNEL_FUNCTION float decayed(float rate, float decay, float weight) const {
    return weight - rate * decay * weight;
  }
  TRAINCTL_KERNEL_FUNCTION float rate(const float* factors, float rate, float weight_rms, float direction_rms) const {
    const float limited = relative_step ? fminf(rate, factors[1]) : rate;
    return fmaxf(epsilon_2, weight_rms) * limited / fmaxf(1.0f, direction_rms / clip_threshold);
  }
};

}  // namespace trainctl
