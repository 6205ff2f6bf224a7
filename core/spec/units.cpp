// Parses and prints numbers and quantities with units.
#include "core/spec/units.h"

#include <charconv>
#include <cmath>

#include "core/base/format.h"

namespace trainctl {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};
constexpr Unit time_units[] = {{"s", 1},       {"second", 1},   {"seconds", 1}, {"ms", 1e-3},   {"min", 60},
                               {"minute", 60}, {"minutes", 60}, {"h", 3600},    {"hour", 3600}, {"hours", 3600},
                               {"d", 86400},   {"day", 86400},  {"days", 86400}};
constexpr Unit size_units[] = {
    {"B", 1},     {"kB", 1e3},   {"KB", 1e3},      {"MB", 1e6},         {"GB", 1e9},
    {"TB", 1e12}, {"KiB", 1024}, {"MiB", 1048576}, {"GiB", 1073741824}, {"TiB", 1099511627776}};

std::optional<double> plain_number(std::string_view text) {
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return {};
  return value;
}

struct Quantity {
  double amount;
  std::string_view unit;
};

// Splits "25 MB" or "25MB" into a number and a word, which may be empty.
std::optional<Quantity> split(std::string_view text) {
  std::size_t end = text.size();
  while (end > 0 && ((text[end - 1] | 32) >= 'a' && (text[end - 1] | 32) <= 'z')) --end;
  const std::string_view unit = text.substr(end);
  while (end > 0 && text[end - 1] == ' ') --end;
  const auto amount = parse_number(text.substr(0, end));
  if (!amount) return {};
  return Quantity{*amount, unit};
}

template <std::size_t count>
std::optional<double> scaled(const Quantity& quantity, const Unit (&units)[count]) {
  if (quantity.unit.empty()) return quantity.amount;
  for (const Unit& unit : units) {
    const double amount = quantity.amount * unit.factor;
    if (unit.name == quantity.unit) return std::isfinite(amount) ? std::optional(amount) : std::nullopt;
  }
  return {};
}

}  // namespace

std::optional<double> parse_number(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return plain_number(text);
  const auto numerator = plain_number(text.substr(0, slash));
  const auto denominator = plain_number(text.substr(slash + 1));
  if (!numerator || !denominator || *denominator == 0) return {};
  const double quotient = *numerator / *denominator;
  return std::isfinite(quotient) ? std::optional(quotient) : std::nullopt;
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  std::int64_t whole = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), whole);
  if (error == std::errc() && end == text.data() + text.size()) return whole;
  const auto number = plain_number(text);
  // Above 2^53, a double cannot represent every whole number.
  if (!number || std::floor(*number) != *number || std::abs(*number) > 0x1p53) return {};
  return static_cast<std::int64_t>(*number);
}

std::optional<Duration> parse_duration(std::string_view text) {
  const auto quantity = split(text);
  if (!quantity) return {};
  if (quantity->unit.empty() || quantity->unit == "step" || quantity->unit == "steps") {
    if (std::floor(quantity->amount) != quantity->amount) return {};
    return Duration::steps(quantity->amount);
  }
  if (quantity->unit == "epoch" || quantity->unit == "epochs") return Duration::epochs(quantity->amount);
  const auto seconds = scaled(*quantity, time_units);
  if (!seconds) return {};
  return Duration::seconds(*seconds);
}

std::optional<Seconds> parse_seconds(std::string_view text) {
  const auto quantity = split(text);
  const auto seconds = quantity ? scaled(*quantity, time_units) : std::nullopt;
  if (!seconds) return {};
  return Seconds{*seconds};
}

std::optional<Size> parse_size(std::string_view text) {
  const auto quantity = split(text);
  const auto bytes = quantity ? scaled(*quantity, size_units) : std::nullopt;
  if (!bytes || *bytes > 0x1p62 || *bytes < -0x1p62) return {};
  return Size{static_cast<std::int64_t>(std::llround(*bytes))};
}

std::string to_string(const Duration& duration) {
  const bool one = duration.amount == 1;
  const char* unit = duration.unit == Duration::Unit::steps    ? (one ? "step" : "steps")
                     : duration.unit == Duration::Unit::epochs ? (one ? "epoch" : "epochs")
                                                               : "s";
  return format("{} {}", duration.amount, unit);
}

std::string to_string(const Seconds& time) {
  constexpr double day = 86400;
  const bool whole_days = time.value >= day && std::fmod(time.value, day) == 0;
  return whole_days ? format("{} d", time.value / day) : format("{} s", time.value);
}

std::string to_string(const Size& size) {
  for (const auto& [name, factor] : {Unit{"GB", 1e9}, Unit{"MB", 1e6}, Unit{"kB", 1e3}}) {
    const auto whole = static_cast<std::int64_t>(factor);
    if (size.bytes != 0 && size.bytes % whole == 0) return format("{} {}", size.bytes / whole, name);
  }
  return format("{} B", size.bytes);
}

}  // namespace trainctl
