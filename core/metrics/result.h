// A result that a run reports: the loss or a metric.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace trainctl {

// Numbers by row.
using Table = std::vector<std::vector<double>>;

// A result's name, its sums among those of a step, and the function that computes its value from these sums and the
// count (the sum of the sample weights).
struct MetricResult {
  std::string name;
  std::size_t first = 0;  // of its sums among those of a step: all losses, then all metrics
  std::size_t sums = 1;
  std::function<double(std::span<const double> sums, double count)> value;
  std::size_t columns = 0;  // of a result that is the table of its sums, row by row, and has no value; 0: of others
  bool derived = false;     // an earlier result has the same sums among its own

  // The value, given all sums of a step or an epoch.
  double of(std::span<const double> all, double count) const { return value(all.subspan(first, sums), count); }
};

}  // namespace trainctl
