// What is monitored for the best checkpoint and for early stopping, and which of two values is better.
#pragma once

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

// Why a run with these results ("loss", "accuracy", ...) cannot monitor the metric of this name; "" where it can.
std::string why_not_monitored(std::string_view monitor, const std::vector<std::string>& results, bool has_validation);

// The mode that follows from a metric's name ("val_accuracy"): what its rule says; a loss shrinks.
MonitorMode mode_of(std::string_view metric);

// Whether `value` beats `best` by more than `min_delta`. NaN never does, and every number beats NaN.
bool is_better(double value, double best, MonitorMode mode, double min_delta = 0);

}  // namespace trainctl
