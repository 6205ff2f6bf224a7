// Bounds on the metrics of an evaluation, which `trainctl eval` checks.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/base/json_fwd.h"
#include "core/metrics/monitor.h"

namespace trainctl {

struct RunSpec;

// A bound on a metric: the smallest accepted value if larger is better, else the largest one.
struct Threshold {
  std::string metric;
  double bound = 0;
  MonitorMode mode = MonitorMode::minimum;  // of the metric

  bool is_met(double value) const;
  // Describes a value that does not meet the bound: "accuracy 0.931 is not at least 0.97".
  std::string text_of_miss(double value) const;
};

// Reads texts METRIC=VALUE, whose metrics must be results of the config. Throws Error{config} that lists all errors.
std::vector<Threshold> read_thresholds(const std::vector<std::string>& texts, const RunSpec& spec);

// Returns {"accuracy": {"bound": 0.97, "met": false}}, by metric. `values` must have a value for each metric.
Json to_json(const std::vector<Threshold>& thresholds, const std::map<std::string, double>& values);

}  // namespace trainctl
