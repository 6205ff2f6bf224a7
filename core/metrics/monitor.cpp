// Compares values of a monitored metric.
#include "core/metrics/monitor.h"

#include <algorithm>
#include <cmath>

#include "core/base/format.h"
#include "core/graph/ops/metrics/metrics.h"

namespace trainctl {
namespace {

template <class... Rules>
bool any_larger_is_better(std::string_view metric, const std::variant<Rules...>*) {
  return ((Rules::larger_is_better && metric.ends_with(Rules::name)) || ...);
}

// The name of the result that is monitored: "accuracy" for "val_accuracy".
std::string_view result_of(std::string_view monitor) {
  return monitor.starts_with("val_") ? monitor.substr(4) : monitor;
}

}  // namespace

std::string why_not_monitored(std::string_view monitor, const std::vector<std::string>& results, bool has_validation) {
  const bool on_validation = monitor.starts_with("val_");
  const std::string_view name = result_of(monitor);
  if (std::find(results.begin(), results.end(), name) == results.end()) {
    std::vector<std::string> names = results;
    for (const std::string& result : results) {
      if (has_validation) names.push_back("val_" + result);
    }
    return format("monitor '{}' is not a result of this run; use {}", monitor, join_or(names));
  }
  if (!on_validation || has_validation) return {};
  return format("monitor '{}' needs validation data, but the config has none: set data.validation, or monitor '{}'",
                monitor, name);
}

MonitorMode mode_of(std::string_view metric) {
  const bool grows = any_larger_is_better(metric, static_cast<const MetricRule*>(nullptr));
  return grows ? MonitorMode::maximum : MonitorMode::minimum;
}

std::optional<MonitorMode> mode_of(std::string_view metric, const GivenModes& given) {
  const auto found = given.find(result_of(metric));
  return found == given.end() ? mode_of(metric) : found->second;
}

std::string why_without_mode(std::string_view metric) {
  return format(
      "whether smaller or greater values of {} are better is unknown: set `mode: min` or `mode: max` in the "
      "metric",
      metric);
}

bool is_better(double value, double best, MonitorMode mode, double min_delta) {
  if (std::isnan(value)) return false;
  if (std::isnan(best)) return true;
  return mode == MonitorMode::maximum ? value > best + min_delta : value < best - min_delta;
}

}  // namespace trainctl
