// Exact means over an epoch.
#include "core/metrics/means.h"

#include "core/base/error.h"

namespace trainctl {

MetricMeans::MetricMeans(std::vector<std::string> names) : names_(std::move(names)), sums_(names_.size()) {}

void MetricMeans::add(std::span<const double> sums, double count) {
  require(sums.size() == sums_.size(), "one sum for each metric");
  for (std::size_t i = 0; i < sums.size(); ++i) sums_[i] += sums[i];
  count_ += count;
}

std::map<std::string, double> MetricMeans::means() const {
  std::map<std::string, double> result;
  if (count_ == 0) return result;
  for (std::size_t i = 0; i < names_.size(); ++i) result[names_[i]] = sums_[i] / count_;
  return result;
}

void MetricMeans::clear() {
  sums_.assign(sums_.size(), 0.0);
  count_ = 0;
}

}  // namespace trainctl
