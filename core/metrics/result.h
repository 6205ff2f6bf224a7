// What a run reports of samples: the loss or a metric.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>

namespace trainctl {

// Its name, which of a step's sums are its own, and what these and the count, the sum of the weights, come to.
struct MetricResult {
  std::string name;
  std::size_t first = 0;  // of its sums: a step's are those of all losses, then those of all metrics
  std::size_t sums = 1;
  std::function<double(std::span<const double> sums, double count)> value;
  bool derived = false;  // a result before it has the same sums, among others

  // What it comes to, given all sums of a step or an epoch.
  double of(std::span<const double> all, double count) const { return value(all.subspan(first, sums), count); }
};

}  // namespace trainctl
