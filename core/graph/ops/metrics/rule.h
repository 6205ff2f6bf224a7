// Defines the members that the rule of a metric must have.
//
// A metric consists of a few sums over samples, and a value that is computed from the sums. A rule is a struct in a
// file of its own. It has the options of the metric as members, and its arithmetic, which is compiled into the kernels
// of all devices:
//
//   name, meaning                for the config; optionally aliases, other names in Keras
//   larger_is_better             whether the best of several values is the largest
//   options(key)                 calls key(name, member, meaning, range) for each option
//   adapt(loss)                  adapts the rule to the loss; returns why the metric cannot be used with it, or ""
//   adapted(flag)                calls flag(name, set) for each member that adapt() sets
//   of_predictions(loss)         whether it reads the predictions of the network instead of the input of the loss
//   sums()                       the number of sums
//   value(sums, count)           the value, from the sums and the sum of weights over all batches and ranks; NaN if the
//                                data does not define it: then `wants` names the missing data, "samples of ..."
//   zero_division(sums)          optional: why the value, or a part of it, is 0 although it would divide by 0, such as
//                                "counts as 0, since ..."; "" if it does not divide by 0
//   over                         the unit that adds to the sums (MetricOver)
//
// The other members depend on `over`. For elements, with a prediction x and its target t:
//
//   place<Math>(x, t)            the index of the sum to which the weight of the row is added
//
// Math has the functions of core/graph/ops/losses/rule.h. For rows, there is one sum:
//
//   row(row, target)             the value that, times the weight of the row, is added to the sum
//
// For outputs, there are `terms` sums for each of the K values of a row, in the order [term][value]:
//
//   of_outputs(row, target)      a function of (k, x) that returns the Sums<terms> of x, the k-th value of the row
//
// For exact outputs, there are `terms` sums for each of the K values of a row, each as sum_parts summands, in the order
// [summand][term][value]. Sums over a micro-batch are computed in twice the precision of float64 (PreciseSum):
//
//   term(i, x, t)                the i-th term for a value x and its target t
//
// For cells, the metric is a table of the sums. It has columns() and no value():
//
//   cell(row, target)            the index of the sum to which the weight of the row is added
//
// For sequences, there is one sum; `distance` is the edit distance between the sequence that is decoded from all steps
// of a sample and the target, which has `length` classes:
//
//   of_distance(distance, length)  the value that, times the weight of the sample, is added to the sum
//
// A row has the type Math, and the members values, at(k), first_largest(), root(), exp(), and sum(f) and largest(f),
// where f(k, x) returns a number; largest(f) ignores NaN. A target has is_class_number(); label(), the number of its
// class; and target(k) if the targets are values.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <string>

#include "core/base/kernel_function.h"
#include "core/graph/ops/losses/rule.h"

namespace trainctl {

// The unit of the predictions that adds to the sums; see above.
enum class MetricOver { rows, elements, outputs, exact_outputs, cells, sequences };

// A sum in about twice the precision of float64: the float64 sum, and the sum of what its additions rounded off
// (Knuth's TwoSum). A sum of squares that is about 10^14 times the variance of its terms still has the digits of the
// variance.
struct PreciseSum {
  double sum = 0, rest = 0;

  TRAINCTL_KERNEL_FUNCTION void add(double value) {
    const double total = sum + value, added = total - sum;
    rest += (sum - (total - added)) + (value - added);
    sum = total;
  }
  TRAINCTL_KERNEL_FUNCTION void add(const PreciseSum& other) {
    add(other.sum);
    rest += other.rest;
  }
  // Adds a * b. The product is an fma, which no compiler merges with the additions that follow.
  TRAINCTL_KERNEL_FUNCTION void add_product(double a, double b) {
    const double product = fma(a, b, 0.0);
    add(product);
    rest += fma(a, b, -product);
  }
};

// A sum as five float32 summands, which are added up over micro-batches and ranks. Each of the first four has 12 bits
// of the sum, so that float32 adds some thousands of them exactly; the last one is the remainder.
inline constexpr int sum_parts = 5;
struct SumParts {
  float of[sum_parts];
};

// The summands of a sum.
TRAINCTL_KERNEL_FUNCTION SumParts parts_of(const PreciseSum& sum) {
  int exponent = 0;
  frexp(sum.sum, &exponent);
  double grid = ldexp(1.0, exponent - 12), left = sum.sum;
  SumParts parts;
  for (int i = 0; i + 1 < sum_parts; ++i) {
    const double part = rint(left / grid) * grid;
    parts.of[i] = static_cast<float>(part);
    left -= part;
    grid = ldexp(grid, -12);
  }
  parts.of[sum_parts - 1] = static_cast<float>(left + sum.rest);
  return parts;
}

// The loss of the output that a metric is computed for.
struct MetricSetting {
  LossTargets targets = LossTargets::values;
  LossLink link = LossLink::identity;
  bool linked = false;      // whether the network's predictions are the link function of the input of the loss
  std::int64_t values = 1;  // number of values in a row of the network's output
  int mask_index = 0;       // the blank of a loss over sequences
};

// The base of metrics that are the mean of a value over the samples.
struct MeanMetric {
  static constexpr MetricOver over = MetricOver::rows;

  template <class Flag>
  static void adapted(const Flag&) {}
  static constexpr int sums() { return 1; }
  static double value(std::span<const double> sums, double count) { return sums[0] / count; }
};

// The base of metrics that are the mean of a comparison of predictions with target values.
struct ValueMetric : MeanMetric {
  template <class Key>
  static void options(const Key&) {}
  static constexpr bool of_predictions(const MetricSetting& loss) { return loss.linked; }

 protected:
  // The reason why the metric `name` cannot be used with the loss, or "".
  static std::string wants_values(const char* name, const MetricSetting& loss) {
    return loss.targets == LossTargets::class_numbers
               ? std::string(name) + " needs target values, but the targets of the loss are class numbers"
               : "";
  }
};

// The maximum number of outputs of a metric that has sums for each output: all ranks exchange these sums in every step.
inline constexpr std::int64_t max_counted_outputs = 10000;
inline std::string too_many_outputs(const char* name, std::int64_t outputs) {
  return std::string(name) + " has sums for each output, and " + std::to_string(outputs) + " outputs are more than " +
         std::to_string(max_counted_outputs);
}

}  // namespace trainctl
