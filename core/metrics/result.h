// A result that a run reports: the loss or a metric.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>

namespace trainctl {

// A result's name, its sums among those of a step, and the function that computes its value from these sums and the
// count (the sum of the sample weights).
struct MetricResult {
  std::string name;
  std::size_t first = 0;  // of its sums among those of a step: all losses, then all metrics
  std::size_t sums = 1;
  std::function<double(std::span<const double> sums, double count)> value;
  bool derived = false;  // an earlier result has the same sums among its own

  // The value, given all sums of a step or an epoch.
  double of(std::span<const double> all, double count) const { return value(all.subspan(first, sums), count); }
};

}  // namespace trainctl
