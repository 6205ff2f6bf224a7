// Compares the results of repeated measurements.
#include "parallel/plan/measured/repeated.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "core/base/error.h"
#include "core/base/median.h"

namespace trainctl {
namespace {

using Times = std::vector<double>;

// Returns the median of the relative differences between the measured times of two results. A few outliers hardly
// change the median: disturbed measurements, or some message sizes with times that alternate between two values.
double distance(const Times& a, const Times& b) {
  std::vector<double> differences;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const double shorter = std::min(a[i], b[i]);
    differences.push_back(shorter > 0 ? std::abs(a[i] - b[i]) / shorter : 0);
  }
  return differences.empty() ? 0 : median(differences);
}

// Returns the sum of the first `count` times.
double total(const Times& times, std::size_t count) {
  return std::accumulate(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(count), 0.0);
}

}  // namespace

Repeated::Pair Repeated::best() const {
  require(!results_.empty(), "no measurement was taken");
  std::optional<Pair> best;
  for (std::size_t i = 0; i < results_.size(); ++i) {
    for (std::size_t k = i + 1; k < results_.size(); ++k) {
      const std::size_t count = std::min(results_[i].size(), results_[k].size());
      const double of_first = total(results_[i], count), of_second = total(results_[k], count);
      const bool first = of_first <= of_second;
      const Pair pair{first ? i : k, first ? k : i, distance(results_[i], results_[k]), std::min(of_first, of_second)};
      const bool agrees = pair.distance <= agreement_, best_agrees = best && best->distance <= agreement_;
      const bool better = agrees && best_agrees ? pair.seconds < best->seconds
                                                : agrees || (!best_agrees && (!best || pair.distance < best->distance));
      if (better) best = pair;
    }
  }
  return best.value_or(Pair{});
}

bool Repeated::settled(bool out_of_time) const {
  if (results_.size() >= max_results_) return true;
  return results_.size() > 1 && (out_of_time || best().distance <= agreement_);
}

double Repeated::spread() const { return results_.size() > 1 ? best().distance : 0; }

}  // namespace trainctl
