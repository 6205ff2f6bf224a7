// The home of nlohmann/json. A slow header: include it from .cpp files that write or read JSON, never from a header.
#pragma once

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

namespace trainctl {

using Json = nlohmann::ordered_json;

// A number that may be NaN or infinite, which JSON has no numbers for: then "NaN", "Infinity" or "-Infinity".
inline Json json_number(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
}

// Reads what json_number() wrote; null, too, is NaN. Throws Json::exception where it is neither.
inline double number_of(const Json& json) {
  if (json.is_number()) return json.get<double>();
  if (json.is_null() || json == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (json == "Infinity") return std::numeric_limits<double>::infinity();
  if (json == "-Infinity") return -std::numeric_limits<double>::infinity();
  return json.get<double>();
}

// An object of names and numbers, as metrics are kept.
template <class Map>
Json json_numbers(const Map& values) {
  Json json = Json::object();
  for (const auto& [name, value] : values) json[name] = json_number(value);
  return json;
}

}  // namespace trainctl
