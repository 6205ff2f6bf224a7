// The members that the rule of a loss must have.
//
// A rule is a struct in a file of its own: the loss's options as members, and its arithmetic, which the kernels of all
// devices compile. It states
//
//   name, meaning                for the config; aliases, where Keras has other names for it
//   targets                      the form of its targets
//   link                         the function that makes predictions out of the values that the loss takes
//   options(key)                 calls key(name, member, meaning, range) for each option
//   smoothing(values)            how targets are smoothed: t = scale * target + shift, of `values` values
//   chance(values)               the expected mean loss before training; 0: not known
//   over                         what one value of the loss is a function of (LossOver)
//
// and, where it is over elements, for a prediction x and its target t
//
//   element<Math>(x, t)          the element's loss; that of a row is their mean
//   slope<Math>(x, t)            its derivative by x
//
// Math has the functions that devices compute in their own ways: sigmoid, tanh, softplus(x) = log(1 + e^x), and
// power(x, e) = x^e for x >= 0. Else it has one function of a row,
//
//   row(row, t, weight)          the loss; writes the gradient times `weight` where the row has one
//
// for a row that offers largest(), largest(f) with f(k, x) a number, sums<n>(f) with f(k, x) a Sums<n>, write(f) with
// f(k, x) an element of the gradient, trains(), exp(), log() and power(); t(k) is the smoothed target. Where the loss
// is over samples the row is that of all values of a sample at all its positions, and offers sums, write, trains() and
// sigmoid(). Over classes ranks may have parts of the row: it offers no largest(f), and the rule has
//
//   class_sums(row, t, top)      the Sums<3> that row() asks for, with `top` the row's largest value: of e^(x - top),
//                                of the targets, and of the targets times x - top plus what depends on the targets
//                                alone
#pragma once

#include <cmath>
#include <cstdint>

#include "core/base/kernel_function.h"
#include "core/spec/type_info.h"

namespace trainctl {

enum class LossTargets { class_numbers, distributions, labels, values };  // labels: 0 or 1 of each element
enum class LossLink { identity, softmax, sigmoid };
enum class LossOver { elements, rows, classes, samples };  // classes: rows that ranks may have parts of

struct Smoothing {
  float scale = 1, shift = 0;
};

template <int n>
struct Sums {
  float of[n];
};

}  // namespace trainctl
