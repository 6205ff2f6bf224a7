// Exact values over an epoch: sums over samples, added in float64, and what they come to.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/metrics/metric.h"
#include "core/metrics/result.h"

namespace trainctl {

// The loss, then the metrics. `rows_each`: how many rows of the network's output have a weight in common.
std::vector<MetricResult> metric_results(const std::vector<ResolvedMetric>& metrics, std::int64_t rows_each);

class MetricMeans {
 public:
  explicit MetricMeans(std::vector<MetricResult> results);

  // Adds one batch: the sums of all results over its samples, one result behind the other, and the sum of their
  // weights.
  void add(std::span<const double> sums, double count);
  // Adds what another one has gathered (of the same results).
  void add(const MetricMeans& other) { add(other.sums_, other.count_); }

  const std::vector<MetricResult>& results() const { return results_; }
  const std::vector<double>& sums() const { return sums_; }
  // The sums of one result.
  std::span<const double> sums(std::size_t result) const;
  double count() const { return count_; }
  // What the results come to, by name. Empty when nothing was counted.
  std::map<std::string, double> values() const;
  void clear();

 private:
  std::vector<MetricResult> results_;
  std::vector<std::size_t> first_;  // of each result's sums
  std::vector<double> sums_;
  double count_ = 0;
};

}  // namespace trainctl
