// The members that the rule of a metric must have.
//
// A rule is a struct in a file of its own: the metric's options as members, and its arithmetic. A metric is a few sums
// over samples and the value that they come to. It states
//
//   name, meaning                for the config; aliases, where Keras has other names for it
//   larger_is_better             whether the best of several values is the largest
//   options(key)                 calls key(name, member, meaning, range) for each option
//   adapt(loss)                  fits the rule to the loss beside it; says why it has no meaning there, or ""
//   adapted(flag)                calls flag(name, set) for each member that adapt() sets
//   of_predictions(loss)         whether it takes the network's predictions; else the values that the loss takes
//   sums()                       how many sums there are
//   value(sums, count)           the metric, from the sums and the sum of weights over all batches and ranks; not a
//                                number where data cannot tell: `wants` then says what it lacks, "samples of ..."
//   over                         what adds to which of the sums (MetricOver)
//
// and, where elements do, for a prediction x and its target t
//
//   place<Math>(x, t)            the number of the sum that the weight of the row is added to
//
// for a Math that has sigmoid (see core/graph/ops/losses/rule.h). Where rows do, there is one sum and one function of a
// row,
//
//   row(row, target)             the value that is added to the sum, times the weight of the row
//
// Where outputs do, `terms` sums for each of the K values of a row, those of the first term in front, and
//
//   of_outputs(row, target)      a function of (k, x) that gives the Sums<terms> of the row's k-th value, which is x
//
// Where exact outputs do, `terms` sums for each of the K values of a row, likewise, each in sum_parts parts: all first
// parts in front. A micro-batch's sums are taken in float64, and
//
//   term(i, x, t)                the i-th term of a value x and its target t
//
// Where cells do, the sums are a table, which is the metric: it has columns() and no value(), and
//
//   cell(row, target)            the number of the sum that the weight of the row is added to
//
// A row offers values, at(k), first_largest(), root() and sum(f) with f(k, x) a number, and a target label(), the
// number of its class, and where targets are values target(k). Kernels of all devices compile all of them.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <string>

#include "core/base/kernel_function.h"
#include "core/graph/ops/losses/rule.h"

namespace trainctl {

enum class MetricOver { rows, elements, outputs, exact_outputs, cells };

// A float64 sum as float32 parts that micro-batches and ranks add up: the first two are multiples of a grid of 2^-12
// and one of 2^-24 of the sum's power of two, so that float32 adds up some thousands of them exactly, and the last one
// is what is left.
inline constexpr int sum_parts = 3;
struct SumParts {
  float of[sum_parts];
};

TRAINCTL_KERNEL_FUNCTION SumParts parts_of(double sum) {
  int exponent = 0;
  frexp(sum, &exponent);
  double grid = ldexp(1.0, exponent - 12), left = sum;
  SumParts parts;
  for (int i = 0; i + 1 < sum_parts; ++i) {
    const double part = rint(left / grid) * grid;
    parts.of[i] = static_cast<float>(part);
    left -= part;
    grid = ldexp(grid, -12);
  }
  parts.of[sum_parts - 1] = static_cast<float>(left);
  return parts;
}

// The loss that a metric stands beside.
struct MetricSetting {
  LossTargets targets = LossTargets::values;
  LossLink link = LossLink::identity;
  bool linked = false;      // the network's predictions are the link's function of the values that the loss takes
  std::int64_t values = 1;  // in a row of the network's output
};

// A metric that is the mean of its only sum over the samples.
struct MeanMetric {
  static constexpr MetricOver over = MetricOver::rows;

  template <class Flag>
  static void adapted(const Flag&) {}
  static constexpr int sums() { return 1; }
  static double value(std::span<const double> sums, double count) { return sums[0] / count; }
};

// A mean that compares predictions with target values.
struct ValueMetric : MeanMetric {
  template <class Key>
  static void options(const Key&) {}
  static constexpr bool of_predictions(const MetricSetting& loss) { return loss.linked; }

 protected:
  // Why the metric `name` has no meaning beside the loss, or "".
  static std::string wants_values(const char* name, const MetricSetting& loss) {
    return loss.targets == LossTargets::class_numbers
               ? std::string(name) + " wants target values, but the loss takes class numbers"
               : "";
  }
};

// How many outputs a metric with sums of each output may have: all of these sums travel in every step.
inline constexpr std::int64_t most_counted_outputs = 10000;
inline std::string too_many_outputs(const char* name, std::int64_t outputs) {
  return std::string(name) + " has sums of each output, and " + std::to_string(outputs) + " outputs are more than " +
         std::to_string(most_counted_outputs);
}

}  // namespace trainctl
