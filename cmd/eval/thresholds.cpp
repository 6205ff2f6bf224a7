// Reading thresholds and comparing with them.
#include "cmd/eval/thresholds.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "core/spec/reader.h"
#include "core/spec/units.h"

namespace trainctl {

bool Threshold::is_met(double value) const {
  return mode_of(metric) == MonitorMode::maximum ? value >= bound : value <= bound;
}

std::string Threshold::text_of_miss(double value) const {
  const char* sense = mode_of(metric) == MonitorMode::maximum ? "at least" : "at most";
  return format("{} {:.6g} is not {} {:.6g}", metric, value, sense, bound);
}

std::vector<Threshold> read_thresholds(const std::vector<std::string>& texts, const std::vector<std::string>& results) {
  std::vector<Threshold> thresholds;
  std::string problems;
  for (const std::string& text : texts) {
    const auto problem = [&](const std::string& what) {
      problems += format("{}--threshold {}: {}", problems.empty() ? "" : "\n", text, what);
    };
    const std::size_t equals = text.find('=');
    const std::string metric = text.substr(0, equals);
    const std::optional<double> bound =
        equals == std::string::npos ? std::nullopt : parse_number(text.substr(equals + 1));
    if (!bound || !std::isfinite(*bound)) {
      problem("a threshold is METRIC=VALUE, as accuracy=0.97");
    } else if (std::find(results.begin(), results.end(), metric) == results.end()) {
      problem(format("'{}' is nothing that this config evaluates; there is {}", metric, join_or(results)));
    } else {
      thresholds.push_back({metric, *bound});
    }
  }
  if (!problems.empty()) throw Error(ErrorKind::config, problems);
  return thresholds;
}

Json to_json(const std::vector<Threshold>& thresholds, const std::map<std::string, double>& values) {
  Json json = Json::object();
  for (const Threshold& threshold : thresholds) {
    json[threshold.metric] = {{"bound", threshold.bound}, {"met", threshold.is_met(values.at(threshold.metric))}};
  }
  return json;
}

}  // namespace trainctl
