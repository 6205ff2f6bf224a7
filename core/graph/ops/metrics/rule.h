// The members that the rule of a metric must have.
//
// A rule is a struct in a file of its own: the metric's options as members, and its arithmetic. A metric is a few sums
// over samples and the value that they come to. It states
//
//   name, meaning                for the config
//   larger_is_better             whether the best of several values is the largest
//   options(key)                 calls key(name, member, meaning, range) for each option
//   adapt(loss)                  fits the rule to the loss beside it; says why it has no meaning there, or ""
//   adapted(flag)                calls flag(name, set) for each member that adapt() sets
//   of_predictions(loss)         whether it takes the network's predictions; else the values that the loss takes
//   sums()                       how many sums there are
//   value(sums, count)           the metric, from the sums and the sum of weights over all batches and ranks
//   by_element                   whether each element is counted in one of the sums
//
// and, where it is by element, for a prediction x and its target t
//
//   place<Math>(x, t)            the number of the sum that the weight of the row is added to
//
// for a Math that has sigmoid (see core/graph/ops/losses/rule.h). Else it has one sum and one function of a row,
//
//   row(row, target)             the value that is added to the sum, times the weight of the row
//
// for a row that offers values, at(k), first_largest() and sum(f) with f(k, x) a number, and a target that offers
// label(), the number of its class, and where targets are values target(k). Kernels of all devices compile both.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/base/kernel_function.h"
#include "core/graph/ops/losses/rule.h"

namespace trainctl {

// The loss that a metric stands beside.
struct MetricSetting {
  LossTargets targets = LossTargets::values;
  LossLink link = LossLink::identity;
  bool linked = false;      // the network's predictions are the link's function of the values that the loss takes
  std::int64_t values = 1;  // in a row of the network's output
};

// A metric that is the mean of its only sum over the samples.
struct MeanMetric {
  static constexpr bool by_element = false;

  template <class Flag>
  static void adapted(const Flag&) {}
  static constexpr int sums() { return 1; }
  static double value(std::span<const double> sums, double count) { return sums[0] / count; }
};

}  // namespace trainctl
