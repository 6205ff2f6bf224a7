// Exact values of losses and metrics over an epoch: adds the sums of steps in float64 and computes the values from the
// totals.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/metrics/result.h"

namespace trainctl {

struct ResolvedOutput;

// The results of a run with these outputs: the loss, which is the weighted sum of the outputs' losses; the loss of each
// output if there are several ("output_loss" for an output without a name), and of added losses; the metrics.
std::vector<MetricResult> metric_results(const std::vector<ResolvedOutput>& outputs);

class MetricMeans {
 public:
  explicit MetricMeans(std::vector<MetricResult> results);

  // Adds one batch: the sums of a step, and the step's count. The last sum is the sum of the weights.
  void add(std::span<const double> sums, double count);
  // Adds the batches of another object, which must have the same results.
  void add(const MetricMeans& other) { add(other.sums_, other.count_); }

  const std::vector<MetricResult>& results() const { return results_; }
  const std::vector<double>& sums() const { return sums_; }
  // The sums that belong to one result.
  std::span<const double> sums(const MetricResult& result) const;
  double count() const { return count_; }
  double weight() const { return sums_.back(); }
  // The values of the results that are numbers, and the tables of the others, by name. Empty if no batch was added.
  std::map<std::string, double> values() const;
  std::map<std::string, Table> tables() const;
  // What a reader of the values must know, by name: "precision" -> "counts as 0, since no sample is predicted as
  // positive", "auc" -> "is not defined, since it requires samples of both answers".
  std::map<std::string, std::string> remarks() const;
  void clear();

 private:
  // The sum of the weights by which a metric divides.
  double weight_of(const MetricResult& result) const;

  std::vector<MetricResult> results_;
  std::vector<double> sums_;  // the last one is the sum of the weights
  double count_ = 0;
};

}  // namespace trainctl
