// JSON values by nlohmann/json. The header compiles slowly: include it in .cpp files that write or read JSON, never in
// headers (use core/base/json_fwd.h there).
#pragma once

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "core/base/json_fwd.h"

namespace trainctl {

// Parses a text that trainctl wrote. Throws Json::exception if it is not JSON.
Json parse_json(std::string_view text);
// Parses a text like parse_json(), but returns a discarded value (Json::is_discarded()) if the text is not JSON.
Json try_parse_json(std::string_view text);

// A number as JSON. NaN and the infinities, which JSON cannot express as numbers, become the strings "NaN", "Infinity"
// and "-Infinity".
inline Json json_number(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
}

// Reads what json_number() wrote, and null as NaN. Throws Json::exception for any other value.
inline double number_of(const Json& json) {
  if (json.is_number()) return json.get<double>();
  if (json.is_null() || json == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (json == "Infinity") return std::numeric_limits<double>::infinity();
  if (json == "-Infinity") return -std::numeric_limits<double>::infinity();
  return json.get<double>();
}

// A map of names to numbers, such as metrics, as a JSON object.
template <class Map>
Json json_numbers(const Map& values) {
  Json json = Json::object();
  for (const auto& [name, value] : values) json[name] = json_number(value);
  return json;
}

}  // namespace trainctl
