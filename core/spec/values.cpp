// Reads and writes values of scalar types.
#include "core/spec/values.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <limits>
#include <unordered_map>

#include "core/base/format.h"

namespace trainctl {
namespace {

namespace fs = std::filesystem;
using Kind = TypeInfo::Kind;

// Reads an unquoted scalar with `parse`; reports the expected type if `parse` returns no value.
template <class T, class Parse>
bool read_unquoted(const Node& node, Reader& reader, Kind kind, T& value, Parse parse) {
  if (node.is_scalar() && !node.quoted) {
    if (auto parsed = parse(node.text)) {
      value = static_cast<T>(*parsed);
      return true;
    }
  }
  reader.expected(node, TypeInfo{.kind = kind});
  return false;
}

// Reports an amount above `limit`, the largest that clocks and counters support; `text` is the limit with its unit.
bool in_bounds(const Node& node, Reader& reader, double amount, double limit, std::string_view text) {
  if (std::abs(amount) <= limit) return true;
  reader.error(node.location, format("{} must be at most {}, not {}", reader.key(), text, describe(node)));
  return false;
}

// The limits are about 30 years, and more steps or epochs than any run has.
bool in_bounds(const Node& node, Reader& reader, const Duration& duration) {
  return duration.unit == Duration::Unit::seconds ? in_bounds(node, reader, duration.amount, 1e9, "1e9 s")
                                                  : in_bounds(node, reader, duration.amount, 1e12, "1e12");
}

template <class T>
std::optional<T> parse_bounded(std::string_view text) {
  const auto value = parse_integer(text);
  if (!value || !std::in_range<T>(*value)) return {};
  return static_cast<T>(*value);
}

std::optional<bool> parse_boolean(std::string_view text) {
  if (text == "true" || text == "True" || text == "TRUE") return true;
  if (text == "false" || text == "False" || text == "FALSE") return false;
  return {};
}

std::optional<std::uint64_t> parse_unsigned(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size()) return value;
  return parse_bounded<std::uint64_t>(text);
}

std::optional<float> parse_float(std::string_view text) {
  const auto value = parse_number(text);
  if (!value || std::abs(*value) > std::numeric_limits<float>::max()) return {};
  return static_cast<float>(*value);
}

// Whether the text without quotes would be read as a number, a boolean, `none` or `auto`.
bool looks_typed(const std::string& text) {
  return parse_number(text) || parse_boolean(text) || text == "none" || text == "auto";
}

}  // namespace

template <>
bool Value<bool>::ScalarValue::read(const Node& node, Reader& reader, bool& value) {
  return read_unquoted(node, reader, Kind::boolean, value, parse_boolean);
}
template <>
Node Value<bool>::ScalarValue::write(const bool& value) {
  return scalar_node(value ? "true" : "false");
}

template <>
bool Value<int>::ScalarValue::read(const Node& node, Reader& reader, int& value) {
  return read_unquoted(node, reader, Kind::integer, value, parse_bounded<int>);
}
template <>
Node Value<int>::ScalarValue::write(const int& value) {
  return scalar_node(format("{}", value));
}

template <>
bool Value<std::int64_t>::ScalarValue::read(const Node& node, Reader& reader, std::int64_t& value) {
  return read_unquoted(node, reader, Kind::integer, value, parse_integer);
}
template <>
Node Value<std::int64_t>::ScalarValue::write(const std::int64_t& value) {
  return scalar_node(format("{}", value));
}

template <>
bool Value<std::uint64_t>::ScalarValue::read(const Node& node, Reader& reader, std::uint64_t& value) {
  return read_unquoted(node, reader, Kind::integer, value, parse_unsigned);
}
template <>
Node Value<std::uint64_t>::ScalarValue::write(const std::uint64_t& value) {
  return scalar_node(format("{}", value));
}

template <>
bool Value<float>::ScalarValue::read(const Node& node, Reader& reader, float& value) {
  return read_unquoted(node, reader, Kind::number, value, parse_float);
}
template <>
Node Value<float>::ScalarValue::write(const float& value) {
  return scalar_node(format("{}", value));
}

template <>
bool Value<double>::ScalarValue::read(const Node& node, Reader& reader, double& value) {
  return read_unquoted(node, reader, Kind::number, value, parse_number);
}
template <>
Node Value<double>::ScalarValue::write(const double& value) {
  return scalar_node(format("{}", value));
}

template <>
bool Value<std::string>::ScalarValue::read(const Node& node, Reader& reader, std::string& value) {
  if (!node.is_scalar()) {
    reader.expected(node, type());
    return false;
  }
  value = node.text;
  return true;
}
template <>
Node Value<std::string>::ScalarValue::write(const std::string& value) {
  return scalar_node(value, looks_typed(value));
}

template <>
bool Value<Path>::ScalarValue::read(const Node& node, Reader& reader, Path& value) {
  if (!node.is_scalar() || node.text.empty()) {
    reader.expected(node, type());
    return false;
  }
  std::error_code failure;  // set for example if the working directory was removed; the path then stays relative
  const fs::path base =
      node.base_directory.empty() ? fs::current_path(failure) : fs::absolute(node.base_directory, failure);
  value.text = (base / node.text).lexically_normal().string();
  return true;
}
template <>
Node Value<Path>::ScalarValue::write(const Path& value) {
  return value.empty() ? Node{} : scalar_node(value.text, looks_typed(value.text));
}

template <>
bool Value<Duration>::ScalarValue::read(const Node& node, Reader& reader, Duration& value) {
  return read_unquoted(node, reader, Kind::duration, value, parse_duration) && in_bounds(node, reader, value);
}
template <>
Node Value<Duration>::ScalarValue::write(const Duration& value) {
  return scalar_node(to_string(value));
}

template <>
bool Value<Seconds>::ScalarValue::read(const Node& node, Reader& reader, Seconds& value) {
  return read_unquoted(node, reader, Kind::time, value, parse_seconds) &&
         in_bounds(node, reader, value.value, 1e9, "1e9 s");
}
template <>
Node Value<Seconds>::ScalarValue::write(const Seconds& value) {
  return scalar_node(to_string(value));
}

template <>
bool Value<Size>::ScalarValue::read(const Node& node, Reader& reader, Size& value) {
  return read_unquoted(node, reader, Kind::size, value, parse_size);
}
template <>
Node Value<Size>::ScalarValue::write(const Size& value) {
  return scalar_node(to_string(value));
}

int read_word(const Node& node, Reader& reader, const std::vector<std::string>& words, bool report) {
  if (node.is_scalar()) {
    const auto word = std::find(words.begin(), words.end(), node.text);
    if (word != words.end()) return static_cast<int>(word - words.begin());
  }
  if (report) reader.expected(node, TypeInfo{.kind = Kind::enumeration, .names = words});
  return -1;
}

bool is_word(const Node& node, std::string_view word) { return node.is_scalar() && !node.quoted && node.text == word; }

TypeInfo with_words(TypeInfo type, const std::vector<std::string>& words) {
  type.names.insert(type.names.begin(), words.begin(), words.end());
  return type;
}

bool keys_are_unique(const Node& map, Reader& reader) {
  bool unique = true;
  std::unordered_map<std::string_view, const SourceLocation*> first;
  for (const Node::Entry& entry : map.entries) {
    const auto [found, added] = first.try_emplace(entry.key, &entry.key_location);
    if (added) continue;
    reader.error(entry.key_location, "repeated key '" + entry.key + "'", *found->second, "first");
    unique = false;
  }
  return unique;
}

}  // namespace trainctl
