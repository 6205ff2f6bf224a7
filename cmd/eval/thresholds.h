// Values that metrics must reach for `eval` to answer yes: --threshold accuracy=0.97.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/base/json_fwd.h"
#include "core/metrics/monitor.h"

namespace trainctl {

// A bound on a metric: at least `bound` where larger is better, at most it elsewhere.
struct Threshold {
  std::string metric;
  double bound = 0;

  bool is_met(double value) const;
  // "accuracy 0.931 is not at least 0.97".
  std::string text_of_miss(double value) const;
};

// Reads texts METRIC=VALUE, of metrics that are among `results`. Throws Error{config} that names all that is wrong.
std::vector<Threshold> read_thresholds(const std::vector<std::string>& texts, const std::vector<std::string>& results);

// {"accuracy": {"bound": 0.97, "met": false}}, by metric. `values` has each of them.
Json to_json(const std::vector<Threshold>& thresholds, const std::map<std::string, double>& values);

}  // namespace trainctl
