// Exact means over an epoch: sums over samples, added in float64, over the sum of weights.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

namespace trainctl {

class MetricMeans {
 public:
  // "loss", "accuracy", ...: in the order in which sums are given.
  explicit MetricMeans(std::vector<std::string> names);

  // Adds one batch: for each name a sum over its samples, and the sum of their weights.
  void add(std::span<const double> sums, double count);
  // Adds what another one has gathered (of the same names).
  void add(const MetricMeans& other) { add(other.sums_, other.count_); }

  const std::vector<std::string>& names() const { return names_; }
  const std::vector<double>& sums() const { return sums_; }
  double count() const { return count_; }
  // Empty when nothing was counted.
  std::map<std::string, double> means() const;
  void clear();

 private:
  std::vector<std::string> names_;
  std::vector<double> sums_;
  double count_ = 0;
};

}  // namespace trainctl
