// The range of the numbers of a column, and whether float32 tells them apart.
#pragma once

#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace trainctl {

// The range of a column's numbers, which tells whether float32 keeps their differences.
struct NumberRange {
  double smallest = std::numeric_limits<double>::infinity(), largest = -smallest;

  // The first number for each float32 number; null after equal_in_float was found, or if they are too many.
  std::optional<std::map<float, double>> first_of_float{std::in_place};
  std::optional<std::pair<double, double>> equal_in_float;  // two different numbers that are equal as float32

  void add(double number);
  // A warning with its remedy if different numbers are equal as float32 and the range has fewer than 256 different
  // float32 numbers, as have times of a day in seconds since 1970; "" otherwise.
  std::string warning(const std::string& path, const std::string& column) const;
};

}  // namespace trainctl
