// Bins of the numbers of a column: Keras' Discretization.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/spec/keys.h"

namespace trainctl {

// How a column of numbers is divided into bins; one of both is set.
struct Discretization {
  std::optional<std::int64_t> num_bins;  // bins of about as many training samples each
  std::vector<double> bin_boundaries;    // ascending

  static Keys<Discretization> keys();
};

// The boundaries between bins of about as many values each: those that Keras' Discretization(num_bins) has after
// adapt(values), which approximates quantiles by at most 100 of the values. There are fewer than num_bins - 1 if there
// are fewer values than bins.
std::vector<float> quantile_boundaries(std::vector<float> values, std::int64_t num_bins);

// The bin of a value: the number of boundaries that are not above it.
std::int64_t bin_of(float value, const std::vector<float>& boundaries);

}  // namespace trainctl
