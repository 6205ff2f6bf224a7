// The members that the rule of an optimizer must have.
//
// A rule is a struct in a file of its own: the optimizer's options as members, and its arithmetic for one element,
// which the kernels of all devices compile. It states
//
//   name, meaning, decay_meaning     for the config: "sgd", what it is, how weight decay enters
//   learning_rate, weight_decay      the defaults
//   state_names                      the states that the rule may keep, each with one value per parameter value
//   always_kept, kept()              bit k: whether state k is kept with all options, and with the present ones
//   options(key)                     calls key(name, member, meaning, range) for each option
//   factors, factor(i, step)         numbers that depend on the step alone (from 0), computed once
//   by_parameter                     whether a step needs norms over each parameter
//
// and, where it is not by parameter, one function, which gets the gradient of the mean loss, clipped:
//
//   step(factors, rate, decay, gradient, weight&, states)
//
// States that are not kept are 0 before each call and discarded after it. A rule by parameter has three functions:
//
//   direction(factors, decay, gradient, weight, states)      updates the states; returns the element of the direction
//   ratio(spared, decay, weight_norm, direction_norm)        the factor on the parameter's learning rate; `spared`:
//                                                            whether weight decay leaves the parameter out
//   apply(factors, rate, decay, gradient, weight&, states)   takes the step, with `rate` multiplied by that factor
//
// A rule by parameter that also states `factored = true` has one state, which holds means of squared gradients over the
// rows and columns of a parameter (Factors in core/graph/ops/optimizers/optimizers.h), and these functions:
//
//   square(gradient)                                         what the means are of
//   average(factors, kept, mean)                             the new value of a kept mean
//   direction(gradient, row, column)                         the element of the direction; `row` is the mean of its row
//                                                            over the mean of all rows, 1 for a vector
//   decayed(rate, decay, weight)                             the weight that the step is added to
//   rate(factors, rate, weight_rms, direction_rms)           the factor on the direction; root mean squares of the
//                                                            decayed parameter and of its direction
#pragma once

#include <cmath>
#include <cstdint>

#include "core/base/kernel_function.h"
#include "core/spec/type_info.h"

namespace trainctl {

// The meaning of weight decay where it is not decoupled.
inline constexpr const char* l2_penalty =
    "L2 penalty: weight_decay w is added to the gradient, as in PyTorch. Keras decouples it from the gradient in all "
    "optimizers, as adamw does.";

// The meaning of an option of rules that divide by a root of squared gradients.
inline constexpr const char* epsilon_in_root_meaning =
    "Whether epsilon is added before the root is taken, as in Keras, where the same number weighs far more. The "
    "default "
    "adds it to the root, as PyTorch does.";

// What such a rule divides by.
TRAINCTL_KERNEL_FUNCTION float root_with_epsilon(float square, float epsilon, bool in_root) {
  return in_root ? sqrtf(square + epsilon) : sqrtf(square) + epsilon;
}

// The factor that corrects the bias of an average that began at 0: 1 / (1 - beta^(step + 1)) (Kingma and Ba, 2015).
TRAINCTL_KERNEL_FUNCTION float bias_correction(float beta, std::int64_t step) {
  return static_cast<float>(1 / (1 - pow(static_cast<double>(beta), static_cast<double>(step + 1))));
}

}  // namespace trainctl
