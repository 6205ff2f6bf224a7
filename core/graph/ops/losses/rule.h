// The members that the rule of a loss must have.
//
// A rule is a struct in a file of its own: the loss's options as members, and its arithmetic, which the kernels of all
// devices compile. It states
//
//   name, meaning                for the config
//   targets                      the form of its targets
//   link                         the function that makes predictions out of the values that the loss takes
//   options(key)                 calls key(name, member, meaning, range) for each option
//   smoothing(values)            how targets are smoothed: t = scale * target + shift, of `values` values
//   chance(values)               the expected mean loss before training; 0: not known
//   by_element                   whether the loss of a sample is the mean of its elements' losses
//
// and, where it is by element, for a prediction x and its target t
//
//   element<Math>(x, t)          the element's loss
//   slope<Math>(x, t)            its derivative by x
//
// Math has the functions that devices compute in their own ways: sigmoid, and softplus(x) = log(1 + e^x). Else it has
// one function of a sample,
//
//   row(row, t, weight)          the loss; writes the gradient times `weight` where the row has one
//
// for a row that offers largest(), sums<n>(f) with f(k, x) a Sums<n>, write(f) with f(k, x) an element of the gradient,
// trains(), exp() and log(); t(k) is the smoothed target.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/base/kernel_function.h"
#include "core/spec/type_info.h"

namespace trainctl {

enum class LossTargets { class_numbers, distributions, labels, values };  // labels: 0 or 1 of each element
enum class LossLink { identity, softmax, sigmoid };

struct Smoothing {
  float scale = 1, shift = 0;
};

template <int n>
struct Sums {
  float of[n];
};

}  // namespace trainctl
