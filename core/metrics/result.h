// What a run reports of samples: the loss or a metric.
#pragma once

#include <functional>
#include <span>
#include <string>

namespace trainctl {

// Its name, the number of its sums, and what these and the count, the sum of the weights, come to.
struct MetricResult {
  std::string name;
  int sums = 1;
  std::function<double(std::span<const double> sums, double count)> value;
};

}  // namespace trainctl
