// The metric that is monitored for the best checkpoint and for early stopping, and the comparison of its values.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/spec/values.h"

namespace trainctl {

enum class MonitorMode { minimum, maximum };

template <>
struct EnumNames<MonitorMode> {
  static constexpr EnumName<MonitorMode> names[] = {{MonitorMode::minimum, "min"}, {MonitorMode::maximum, "max"}};
};

// Returns why a run with these results ("loss", "accuracy", ...) cannot monitor the metric `monitor`; "" if it can.
std::string why_not_monitored(std::string_view monitor, const std::vector<std::string>& results, bool has_validation);

// The mode of a metric by its name ("val_accuracy"): the mode of its rule; minimum for losses.
MonitorMode mode_of(std::string_view metric);

// The modes of the results that are expressions, by the results' names; no value if the config gives none.
using GivenModes = std::map<std::string, std::optional<MonitorMode>, std::less<>>;

// The mode of a metric of a run whose config gives the modes `given`; no value if it is unknown.
std::optional<MonitorMode> mode_of(std::string_view metric, const GivenModes& given);

// The error for a metric whose mode is unknown.
std::string why_without_mode(std::string_view metric);

// Whether `value` is better than `best` by more than `min_delta`. NaN is never better, and every number is better than
// NaN.
bool is_better(double value, double best, MonitorMode mode, double min_delta = 0);

}  // namespace trainctl
