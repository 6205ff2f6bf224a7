// Validators of the command line: an option's value must be a number in a range.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "core/base/format.h"
#include "core/spec/units.h"

namespace trainctl {

// Refuses numbers below `least` or above `most`, if that is given, and texts that are no whole number. (The message of
// CLI::PositiveNumber names the largest number that a double has, with all its digits.)
inline CLI::Validator whole_number_from(std::int64_t least, std::optional<std::int64_t> most = {}) {
  const auto check = [least, most](const std::string& value) {
    const auto number = parse_integer(value);
    if (number && *number >= least && !(most && *number > *most)) return std::string();
    if (most) return format("must be a whole number from {} to {}, not '{}'", least, *most, value);
    return format("must be a whole number of at least {}, not '{}'", least, value);
  };
  return CLI::Validator([check](std::string& value) { return check(value); }, "");
}

// Refuses numbers outside of a range, NaN, and texts that are no number. (CLI::Range takes NaN.)
inline CLI::Validator number_between(double least, double most) {
  const auto check = [least, most](const std::string& value) {
    const auto number = parse_number(value);
    if (number && *number >= least && *number <= most) return std::string();
    return format("must be a number from {} to {}, not '{}'", least, most, value);
  };
  return CLI::Validator([check](std::string& value) { return check(value); }, "");
}

}  // namespace trainctl
