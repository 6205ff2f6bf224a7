// Comparing values of a monitored metric.
#include "core/metrics/monitor.h"

#include <cmath>

namespace trainctl {

MonitorMode mode_of(std::string_view metric) {
  return metric.ends_with("accuracy") ? MonitorMode::maximum : MonitorMode::minimum;
}

bool is_better(double value, double best, MonitorMode mode, double min_delta) {
  if (std::isnan(value)) return false;
  if (std::isnan(best)) return true;
  return mode == MonitorMode::maximum ? value > best + min_delta : value < best - min_delta;
}

}  // namespace trainctl
