// A result that a run reports: the loss or a metric.
#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace trainctl {

// Numbers by row.
using Table = std::vector<std::vector<double>>;

// A result's name, its sums among those of a step, and the function that computes its value from these sums and the
// count: that of a loss, or the sum of the weights, which is the last of a step's sums.
struct MetricResult {
  std::string name;
  std::size_t first = 0;  // of its sums among those of a step: all losses, then all metrics, then the weights
  std::size_t sums = 1;
  std::function<double(std::span<const double> sums, double count)> value;
  std::size_t columns = 0;  // of a result that is the table of its sums, row by row, and has no value; 0: of others
  bool derived = false;     // an earlier result has the same sums among its own
  bool by_weight = false;   // its count is the sum of the weights
  std::string wants = {};   // what a result that is not a number lacks; "": it may be anything

  // The value, given all sums of a step or an epoch, and their count. Not a number where no sample weighs anything.
  double of(std::span<const double> all, double count) const {
    if (by_weight && all.back() == 0) return std::numeric_limits<double>::quiet_NaN();
    return value(all.subspan(first, sums), by_weight ? all.back() : count);
  }
};

}  // namespace trainctl
