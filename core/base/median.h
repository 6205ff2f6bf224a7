// The median of measured values.
#pragma once

#include <algorithm>
#include <vector>

namespace trainctl {

// The median of one or more values; for an even number of values, the larger of the two in the middle.
inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace trainctl
