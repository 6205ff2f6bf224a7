// Defines the members that the rule of a loss must have.
//
// A rule is a struct in a file of its own. It has the options of the loss as members, and its arithmetic, which is
// compiled into the kernels of all devices:
//
//   name, meaning                for the config; optionally aliases, other names in Keras
//   targets                      the encoding of its targets (LossTargets)
//   link                         the function that turns the input of the loss into predictions (LossLink)
//   options(key)                 calls key(name, member, meaning, range) for each option
//   smoothing(values)            the smoothing of targets in rows of `values` values: t = scale * target + shift
//   chance(values)               the expected mean loss before training; 0: unknown
//   over                         the values from which one value of the loss is computed (LossOver)
//
// If the loss is over elements, the rule has two functions of a prediction x and its target t:
//
//   element<Math>(x, t)          the loss of the element; the loss of a row is the mean over its elements
//   slope<Math>(x, t)            its derivative with respect to x
//
// Math has the functions that each device implements itself: sigmoid, tanh, log, softplus(x) = log(1 + e^x), and
// power(x, e) = x^e for x >= 0. All other rules have one function of a row, where t(k) is the smoothed target:
//
//   row(row, t, weight)          returns the loss, and writes the gradient times `weight` if row.trains()
//
// A row has the members largest(); largest(f), where f(k, x) returns a number; sums<n>(f), where f(k, x) returns a
// Sums<n>; write(f), where f(k, x) returns an element of the gradient; trains(), exp(), log() and power(). If the loss
// is over samples, the row has all values of a sample at all its positions, and the members sums, write, trains() and
// sigmoid(). If the loss is over classes, ranks may have ranges of the row: it has no largest(f), and the rule also has
//
//   class_sums(row, t, top)      the Sums<3> that row() needs, where `top` is the largest value of the row: the sums of
//                                e^(x - top), of the targets t, and of t (x - top) plus terms that depend only on t
//
// If the loss is over sequences, its kernels compute it from all steps of a sample and a target of another length.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/base/kernel_function.h"
#include "core/spec/type_info.h"

namespace trainctl {

enum class LossTargets { class_numbers, distributions, labels, values };  // labels: yes or no for each element
enum class LossLink { identity, softmax, sigmoid };
// classes: like rows, but ranks may hold ranges of a row; sequences: a sample has one loss, not one for each position.
enum class LossOver { elements, rows, classes, samples, sequences };

struct Smoothing {
  float scale = 1, shift = 0;
};

template <int n>
struct Sums {
  float of[n];
};

}  // namespace trainctl
