// Exact values over an epoch: sums over samples, added in float64, and what they come to.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/metrics/output.h"
#include "core/metrics/result.h"

namespace trainctl {

// The loss, which of several outputs is the weighted sum of their losses; these, where there are several; the metrics.
std::vector<MetricResult> metric_results(const std::vector<ResolvedOutput>& outputs);

class MetricMeans {
 public:
  explicit MetricMeans(std::vector<MetricResult> results);

  // Adds one batch: a step's sums over its samples, and the sum of their weights.
  void add(std::span<const double> sums, double count);
  // Adds what another one has gathered (of the same results).
  void add(const MetricMeans& other) { add(other.sums_, other.count_); }

  const std::vector<MetricResult>& results() const { return results_; }
  const std::vector<double>& sums() const { return sums_; }
  // The sums of one result.
  std::span<const double> sums(const MetricResult& result) const;
  double count() const { return count_; }
  // What the results come to, by name. Empty when nothing was counted.
  std::map<std::string, double> values() const;
  void clear();

 private:
  std::vector<MetricResult> results_;
  std::vector<double> sums_;
  double count_ = 0;
};

}  // namespace trainctl
