// What the rules of optimizers consist of.
//
// A rule is a struct in a file of its own: the optimizer's options as members, and its arithmetic for one element,
// which the kernels of all devices compile. It states
//
//   name, meaning, decay_meaning     for the config: "sgd", what it is, how weight decay enters
//   learning_rate, weight_decay      the defaults
//   state_names                      of the states that it may keep, each one value for each parameter value
//   always_kept, kept()              bit k: whether state k is kept with any options, and with these
//   options(key)                     calls key(name, member, meaning, range) for each option
//   factors, factor(i, step)         numbers that depend on the step alone (from 0), computed once
//   by_parameter                     whether a step needs norms over each parameter
//
// and, where it is not by parameter, one function, which gets the gradient of the mean loss, clipped:
//
//   step(factors, rate, decay, gradient, weight&, states)
//
// States that are not kept are 0 when it is called, and dropped. A rule by parameter has three:
//
//   direction(factors, decay, gradient, weight, states)              brings the states up to date; what norms are of
//   ratio(weight_norm, direction_norm)                               what the parameter's learning rate is multiplied
//   by apply(factors, rate, decay, gradient, weight&, states)           takes the step by that rate
#pragma once

#include <cmath>
#include <cstdint>

#include "core/base/kernel_function.h"
#include "core/spec/type_info.h"

namespace trainctl {

// What undoes the bias of an average that began at 0: 1 / (1 - beta^(step + 1)) (Kingma and Ba, 2015).
TRAINCTL_KERNEL_FUNCTION float bias_correction(float beta, std::int64_t step) {
  return static_cast<float>(1 / (1 - pow(static_cast<double>(beta), static_cast<double>(step + 1))));
}

}  // namespace trainctl
