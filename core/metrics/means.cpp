// Exact values over an epoch.
#include "core/metrics/means.h"

#include "core/base/error.h"

namespace trainctl {

std::vector<MetricResult> metric_results(const std::vector<ResolvedMetric>& metrics, std::int64_t rows_each) {
  const auto rows = static_cast<double>(rows_each);
  std::vector<MetricResult> results{
      {"loss", 1, [rows](std::span<const double> sums, double count) { return sums[0] / (count * rows); }}};
  for (const ResolvedMetric& metric : metrics) {
    results.push_back(
        {metric.name, sums_of(metric.rule), [rows, rule = metric.rule](std::span<const double> sums, double count) {
           return value_of(rule, sums, count * rows);
         }});
  }
  return results;
}

MetricMeans::MetricMeans(std::vector<MetricResult> results) : results_(std::move(results)) {
  std::size_t count = 0;
  for (const MetricResult& result : results_) {
    first_.push_back(count);
    count += static_cast<std::size_t>(result.sums);
  }
  sums_.resize(count);
}

void MetricMeans::add(std::span<const double> sums, double count) {
  require(sums.size() == sums_.size(), "all sums of the results");
  for (std::size_t i = 0; i < sums.size(); ++i) sums_[i] += sums[i];
  count_ += count;
}

std::span<const double> MetricMeans::sums(std::size_t result) const {
  return std::span(sums_).subspan(first_[result], static_cast<std::size_t>(results_[result].sums));
}

std::map<std::string, double> MetricMeans::values() const {
  std::map<std::string, double> values;
  if (count_ == 0) return values;
  for (std::size_t i = 0; i < results_.size(); ++i) values[results_[i].name] = results_[i].value(sums(i), count_);
  return values;
}

void MetricMeans::clear() {
  sums_.assign(sums_.size(), 0.0);
  count_ = 0;
}

}  // namespace trainctl
