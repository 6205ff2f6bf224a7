// A result that a run reports: the loss or a metric.
#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace trainctl {

// A table of numbers, as a list of rows.
using Table = std::vector<std::vector<double>>;

// A result's name, the range of its sums among the sums of a step, and the function that computes its value from these
// sums and a count. For losses this is the step's count, otherwise the sum of the weights, which is the last of a
// step's sums. For an output that counts itself, it is a sum of the output.
struct MetricResult {
  std::string name;
  std::size_t first = 0;  // index of its first sum in a step: all losses, then the counts, metrics and weights
  std::size_t sums = 1;   // number of its sums
  std::function<double(std::span<const double> sums, double count)> value;
  std::size_t columns = 0;  // columns of the table of its sums, if the result is a table without a value; else 0
  bool derived = false;     // whether an earlier result includes the same sums
  bool by_weight = false;   // whether its count is the sum of the weights
  // The index of a sum of another result, which value() receives before the result's own sums; empty: none.
  std::optional<std::size_t> other = {};
  // The index of the sum that is the count, for an output that counts itself.
  std::optional<std::size_t> own_count = {};
  std::string wants = {};  // the data that the result needs, for messages about NaN; "": any data
  double of_nothing = 0;   // the result of an output that counts itself if its count is 0
  // Why the value, or a part of it, is 0 although it would divide by 0 (see zero_division_of); null: it never does.
  std::function<std::string(std::span<const double> sums)> zero_division = {};

  // The value, given all sums of a step or an epoch, and their count. NaN if all weights are zero.
  double of(std::span<const double> all, double count) const {
    if (own_count) {
      count = all[*own_count];
    } else if (by_weight) {
      count = all.back();
    }
    if (by_weight && count == 0) return std::numeric_limits<double>::quiet_NaN();
    if (own_count && count == 0) return of_nothing;
    if (!other) return value(all.subspan(first, sums), count);
    std::vector<double> both{all[*other]};
    both.insert(both.end(), all.begin() + static_cast<std::ptrdiff_t>(first),
                all.begin() + static_cast<std::ptrdiff_t>(first + sums));
    return value(both, count);
  }
};

}  // namespace trainctl
