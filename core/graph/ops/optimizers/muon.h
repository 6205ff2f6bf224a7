// Muon (Jordan et al., 2024), by Keras' formula: the momentum of a matrix is replaced by an orthogonal matrix near it,
// and the step is scaled to the size of AdamW's (Liu et al., 2025: "Muon is scalable for LLM training"). Parameters
// that are not such matrices take the steps of AdamW.
#pragma once

#include <array>

#include "core/graph/ops/optimizers/rule.h"

namespace trainctl {

struct Muon {
  float momentum = 0.95f;
  bool nesterov = true;
  int ns_steps = 5;
  float rms_rate = 0.2f;
  float adam_beta_1 = 0.9f;
  float adam_beta_2 = 0.999f;
  float epsilon = 1e-7f;
  float adam_lr_ratio = 1;

  static constexpr const char* name = "muon";
  static constexpr const char* meaning =
      "Muon (Jordan et al., 2024; Liu et al., 2025), by Keras' formula: the steps of the matrices of hidden layers are "
      "orthogonalized. All other parameters, and those of exclude_layers, take the steps of adamw.";
  static constexpr const char* decay_meaning =
      "Decoupled decay of all parameters: w -= learning_rate weight_decay w before each step.";
  static constexpr double learning_rate = 0.001, weight_decay = 0.004;
  static constexpr std::array state_names{"momentum", "velocity"};
  static constexpr unsigned always_kept = 0b11;
  static constexpr int factors = 1;
  static constexpr bool by_parameter = true, orthogonal = true;

  // The coefficients a, b and c of a Newton-Schulz step X <- a X + (b A + c A A) X with A = X X^T, which moves all
  // singular values of X towards 1.
  static constexpr float coefficients[] = {3.4445f, -4.7750f, 2.0315f};
  // Added to the norm by which a matrix is divided before the first step.
  static constexpr float norm_epsilon = 1e-7f;

  template <class Key>
  static void options(const Key& key) {
    key("momentum", &Muon::momentum, "Decay of the sum of gradients of a matrix.", from_zero_to_below(1));
    key("nesterov", &Muon::nesterov, "Whether the momentum is Nesterov's.", {});
    key("ns_steps", &Muon::ns_steps, "Number of Newton-Schulz steps that orthogonalize a matrix.", between(1, 100));
    key("rms_rate", &Muon::rms_rate,
        "The orthogonal matrix is multiplied by rms_rate sqrt(max(rows, columns)), which gives its elements about this "
        "root mean square, as those of adamw's steps; 0: it is not scaled.",
        at_least(0));
    key("adam_beta_1", &Muon::adam_beta_1, "Decay of the average of gradients in adamw's steps.",
        from_zero_to_below(1));
    key("adam_beta_2", &Muon::adam_beta_2, "Decay of the average of squared gradients in adamw's steps.",
        from_zero_to_below(1));
    key("epsilon", &Muon::epsilon,
        "Added to the root of the average of squared gradients before its bias correction, as in Keras.", more_than(0));
    key("adam_lr_ratio", &Muon::adam_lr_ratio, "The learning rate of adamw's steps, divided by learning_rate.",
        more_than(0));
  }
  unsigned kept() const { return 0b11; }

  // The ratio of the two bias corrections of Adam.
  TRAINCTL_KERNEL_FUNCTION float factor(int, std::int64_t step) const {
    return bias_correction(adam_beta_1, step) / sqrtf(bias_correction(adam_beta_2, step));
  }
  // A step of AdamW for one element.
  TRAINCTL_KERNEL_FUNCTION void adam(const float* factors, float rate, float decay, float gradient, float& weight,
                                     float* states) const {
    states[0] += (1.0f - adam_beta_1) * (gradient - states[0]);
    states[1] += (1.0f - adam_beta_2) * (gradient * gradient - states[1]);
    weight =
        decayed(rate, decay, weight) - rate * adam_lr_ratio * factors[0] * states[0] / (sqrtf(states[1]) + epsilon);
  }
  // Updates the momentum of an element of a matrix, and returns the element of the matrix that is orthogonalized.
  TRAINCTL_KERNEL_FUNCTION float direction(float gradient, float* states) const {
    states[0] = momentum * states[0] + gradient;
    return nesterov ? gradient + momentum * states[0] : states[0];
  }
  TRAINCTL_KERNEL_FUNCTION float decayed(float rate, float decay, float weight) const {
    return weight - rate * decay * weight;
  }
  // The factor of the orthogonal matrix of this size.
  float scale(std::int64_t rows, std::int64_t columns) const {
    return rms_rate > 0 ? rms_rate * std::sqrt(static_cast<float>(rows > columns ? rows : columns)) : 1.0f;
  }
};

}  // namespace trainctl
