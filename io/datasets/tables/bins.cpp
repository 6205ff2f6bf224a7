// Computes boundaries of bins from the values of a column.
#include "io/datasets/tables/bins.h"

#include <algorithm>
#include <cmath>

#include "core/base/format.h"
#include "core/spec/reader.h"
#include "core/spec/values.h"

namespace trainctl {
namespace {

// Values in ascending order, each with the number of values for which it stands.
struct Summary {
  std::vector<float> values, counts;
};

// At most 100 of the values, at equal distances in their order.
Summary summary_of(std::vector<float> values) {
  constexpr double most = 100;
  std::ranges::sort(values);
  const double step = std::max(static_cast<double>(values.size()) / most, 1.0);
  Summary summary;
  for (auto i = static_cast<std::size_t>(step - 1); i < values.size(); i += static_cast<std::size_t>(step)) {
    summary.values.push_back(values[i]);
    summary.counts.push_back(static_cast<float>(step));
  }
  return summary;
}

// The value at `x` of the lines between the points (at, of), and of the first or last point outside of them.
double interpolated(double x, const std::vector<float>& at, const std::vector<float>& of) {
  if (x >= at.back()) return of.back();
  if (x <= at.front()) return of.front();
  const auto above = std::ranges::upper_bound(at, static_cast<float>(x), [&](float, float b) { return x < b; });
  const auto j = static_cast<std::size_t>(above - at.begin()) - 1;
  const double slope = (double{of[j + 1]} - of[j]) / (double{at[j + 1]} - at[j]);
  return slope * (x - at[j]) + of[j];
}

// The values at multiples of the share `epsilon` of all counts.
Summary compressed(const Summary& summary, double epsilon) {
  if (static_cast<double>(summary.values.size()) * epsilon < 1) return summary;
  std::vector<float> sums, shares;
  float sum = 0;
  for (const float count : summary.counts) sums.push_back(sum += count);
  for (const float s : sums) shares.push_back(s / sum);
  Summary result;
  double before = 0;
  const auto steps = static_cast<std::int64_t>(std::ceil(1 / epsilon));
  for (std::int64_t i = 0; i < steps; ++i) {
    const double share = epsilon + static_cast<double>(i) * epsilon;
    const double total = interpolated(share, shares, sums);
    result.values.push_back(static_cast<float>(interpolated(share, shares, summary.values)));
    result.counts.push_back(static_cast<float>(total - before));
    before = total;
  }
  return result;
}

void check_bins(const Discretization& bins, const Node& node, Reader& reader) {
  const auto unsorted = std::ranges::is_sorted_until(bins.bin_boundaries);
  if (unsorted == bins.bin_boundaries.end()) return;
  reader.error(
      node.find("bin_boundaries")->location,
      format("bin_boundaries must be ascending, but {} comes after {}: sort them", *unsorted, *(unsorted - 1)));
}

}  // namespace

Keys<Discretization> Discretization::keys() {
  return Keys<Discretization>("discretize", "How a column of numbers is divided into bins.")
      .key("num_bins", &Discretization::num_bins,
           "The number of bins, whose boundaries are quantiles of the training split, as from the adapt() of Keras' "
           "Discretization.",
           between(2, 65536))
      .key("bin_boundaries", &Discretization::bin_boundaries,
           "The boundaries of the bins, ascending: [0, 1] gives the bins below 0, from 0 to below 1, and from 1.")
      .exclusive({"num_bins", "bin_boundaries"})
      .one_of({"num_bins", "bin_boundaries"}, "the bins")
      .check(check_bins);
}

std::vector<float> quantile_boundaries(std::vector<float> values, std::int64_t num_bins) {
  constexpr double epsilon = 0.01;
  if (values.empty()) return {};
  Summary bins = compressed(compressed(summary_of(std::move(values)), epsilon), 1 / static_cast<double>(num_bins));
  bins.values.pop_back();
  return bins.values;
}

std::int64_t bin_of(float value, const std::vector<float>& boundaries) {
  return std::ranges::upper_bound(boundaries, value) - boundaries.begin();
}

}  // namespace trainctl
