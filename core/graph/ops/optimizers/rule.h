// Defines the members that the rule of an optimizer must have.
//
// A rule is a struct in a file of its own. It has the options of the optimizer as members, and its arithmetic for one
// element, which is compiled into the kernels of all devices:
//
//   name, meaning, decay_meaning     for the config: the name and the descriptions of the rule and of weight decay
//   learning_rate, weight_decay      the default learning rate and the default weight decay
//   state_names                      the states that the rule may keep, each with one value for each element
//   always_kept, kept()              bit k is set if state k is kept whatever the options are, or with these options
//   options(key)                     calls key(name, member, meaning, range) for each option
//   factors, factor(i, step)         the number of factors in the formula that depend only on the step, and factor i at
//                                    a step (counted from 0)
//   by_parameter                     whether a step needs norms of whole parameters
//
// A rule without by_parameter has one function. `gradient` is the clipped gradient of the mean loss:
//
//   step(factors, rate, decay, gradient, weight&, states)
//
// States that are not kept are 0 before each call and discarded after it. A rule with by_parameter has three functions:
//
//   direction(factors, decay, gradient, weight, states)      updates the states; returns the element of the direction
//   ratio(no_decay, decay, weight_norm, direction_norm)      the factor of the parameter's learning rate; `no_decay`:
//                                                            whether the parameter has no weight decay
//   apply(factors, rate, decay, gradient, weight&, states)   updates the weight; `rate` includes that factor
//
// A rule with by_parameter and `factored = true` has one state, which holds means of squared gradients over the rows
// and columns of a parameter (Factors in core/graph/ops/optimizers/update_range.h), and these functions:
//
//   square(gradient)                                         the value that is averaged over rows and over columns
//   average(factors, kept, mean)                             the new value of the moving average `kept`
//   direction(gradient, row, column)                         the element of the direction; `row` is the mean of its row
//                                                            divided by the mean of all rows, 1 for a vector
//   decayed(rate, decay, weight)                             the weight after weight decay, before the step
//   rate(factors, rate, weight_rms, direction_rms)           the factor by which the direction is multiplied; the
//                                                            arguments are the root mean squares of the decayed
//                                                            parameter and of the direction
//
// A rule with by_parameter and `orthogonal = true` has two states. It orthogonalizes the direction of each matrix
// (UpdateRange::matrix) by Newton-Schulz steps, and has these functions:
//
//   adam(factors, rate, decay, gradient, weight&, states)    the step of an element of other parameters
//   direction(gradient, states)                              updates the first state of an element of a matrix; returns
//                                                            the element of the direction
//   decayed(rate, decay, weight)                             the weight after weight decay, before the step
//   scale(rows, columns)                                     the factor of the orthogonal matrix
#pragma once

#include <cmath>
#include <cstdint>

#include "core/base/kernel_function.h"
#include "core/spec/type_info.h"

namespace trainctl {

// The description of weight decay that is not decoupled.
inline constexpr const char* l2_penalty =
    "L2 penalty: weight_decay w is added to the gradient, as in PyTorch. Keras decouples it from the gradient in all "
    "optimizers, as adamw does.";

// The description of epsilon_in_root, an option of rules that divide by a root of squared gradients.
inline constexpr const char* epsilon_in_root_meaning =
    "Whether epsilon is added before the root is taken, as in Keras; the same epsilon then has far more effect. By "
    "default it is added to the root, as in PyTorch.";

// The divisor of rules that divide by a root of squared gradients.
TRAINCTL_KERNEL_FUNCTION float root_with_epsilon(float square, float epsilon, bool in_root) {
  return in_root ? sqrtf(square + epsilon) : sqrtf(square) + epsilon;
}

// The factor that corrects the bias of a moving average with the initial value 0: 1 / (1 - beta^(step + 1)) (Kingma and
// Ba, 2015).
TRAINCTL_KERNEL_FUNCTION float bias_correction(float beta, std::int64_t step) {
  return static_cast<float>(1 / (1 - pow(static_cast<double>(beta), static_cast<double>(step + 1))));
}

}  // namespace trainctl
