// Quantities with units in configs: durations, times and sizes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace trainctl {

// A duration: "10 steps", "1 epoch", "30 s"; a bare number counts steps.
struct Duration {
  enum class Unit { steps, epochs, seconds };

  double amount = 0;
  Unit unit = Unit::steps;

  static Duration steps(double amount) { return {amount, Unit::steps}; }
  static Duration epochs(double amount) { return {amount, Unit::epochs}; }
  static Duration seconds(double amount) { return {amount, Unit::seconds}; }
  bool operator==(const Duration&) const = default;
};

// A time: "30 s", "5 min", "2 h", "1 d", "100 ms"; a bare number counts seconds.
struct Seconds {
  double value = 0;

  bool operator==(const Seconds&) const = default;
};

// A size: "25 MB" (decimal), "16 MiB" (binary); a bare number counts bytes.
struct Size {
  std::int64_t bytes = 0;

  static constexpr Size megabytes(std::int64_t count) { return {count * 1'000'000}; }
  bool operator==(const Size&) const = default;
};

std::string to_string(const Duration& duration);  // such as "10 steps"
std::string to_string(const Seconds& time);       // such as "30 s"
std::string to_string(const Size& size);          // such as "25 MB"; a number of bytes if no unit expresses it exactly

// Parse a quantity with its unit. Empty if the text is not a number with one of the units above, for a number of steps
// that is not whole, and for sizes of more than 2^62 bytes.
std::optional<Duration> parse_duration(std::string_view text);
std::optional<Seconds> parse_seconds(std::string_view text);
std::optional<Size> parse_size(std::string_view text);

// Parses a finite number: "0.1", "1e-3", "1/255". Empty if the text is not a number.
std::optional<double> parse_number(std::string_view text);
// Parses a whole number: "64", "1e6". Empty if the text is not a whole number or the number does not fit.
std::optional<std::int64_t> parse_integer(std::string_view text);

}  // namespace trainctl
