// LAMB (You et al., 2020: "Large batch optimization for deep learning"): Adam's step with decoupled weight decay,
// scaled for each parameter to the norm of the parameter: u = m_hat / (sqrt(v_hat) + epsilon) + weight_decay w;
// w -= rate |w| / |u| u.
#pragma once

#include "core/graph/ops/optimizers/adam.h"

namespace trainctl {

struct Lamb : AdamMoments {
  static constexpr const char* name = "lamb";
  static constexpr const char* meaning =
      "LAMB (You et al., 2020), for large batches: Adam's step, scaled to the norm of each parameter.";
  static constexpr const char* decay_meaning =
      "Decoupled decay: weight_decay w is added to the step before it is scaled.";
  static constexpr double weight_decay = 0;
  static constexpr bool by_parameter = true;

  TRAINCTL_KERNEL_FUNCTION float direction(const float* factors, float decay, float gradient, float weight,
                                           float* states) const {
    average(gradient, states);
    return direction_of(factors, decay, weight, states);
  }
  // The factor of the parameter's learning rate; 1 if either norm is 0, so that a parameter that is initialized to zero
  // can change.
  TRAINCTL_KERNEL_FUNCTION float ratio(bool, float, float weight_norm, float direction_norm) const {
    return weight_norm > 0 && direction_norm > 0 ? weight_norm / direction_norm : 1.0f;
  }
  TRAINCTL_KERNEL_FUNCTION void apply(const float* factors, float rate, float decay, float, float& weight,
                                      float* states) const {
    weight -= rate * direction_of(factors, decay, weight, states);
  }

 private:
  TRAINCTL_KERNEL_FUNCTION float direction_of(const float* factors, float decay, float weight,
                                              const float* states) const {
    return states[0] * factors[0] / (sqrtf(states[1] * factors[1]) + epsilon) + decay * weight;
  }
};

}  // namespace trainctl
