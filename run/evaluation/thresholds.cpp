// Reads bounds on metrics and compares values with them.
#include "run/evaluation/thresholds.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "core/spec/reader.h"
#include "core/spec/units.h"
#include "run/run_spec.h"

namespace trainctl {

bool Threshold::is_met(double value) const { return mode == MonitorMode::maximum ? value >= bound : value <= bound; }

std::string Threshold::text_of_miss(double value) const {
  const char* sense = mode == MonitorMode::maximum ? "at least" : "at most";
  return format("{} {:.6g} is not {} {:.6g}", metric, value, sense, bound);
}

std::vector<Threshold> read_thresholds(const std::vector<std::string>& texts, const RunSpec& spec) {
  const std::vector<std::string> results = spec.train.result_names(spec.model);
  const GivenModes modes = spec.train.given_modes(output_names(spec.model));
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
      problem("a threshold is METRIC=VALUE, such as accuracy=0.97");
    } else if (std::find(results.begin(), results.end(), metric) == results.end()) {
      problem(format("'{}' is no metric of this config; use {}", metric, join_or(results)));
    } else if (const std::optional<MonitorMode> mode = mode_of(metric, modes)) {
      thresholds.push_back({metric, *bound, *mode});
    } else {
      problem(why_without_mode(metric));
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
