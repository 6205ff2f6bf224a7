// The forward declaration of JSON values, for headers.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace trainctl {
using Json = nlohmann::ordered_json;

// Writes a value as text, on one line or, with `indent` from 0, on lines that are indented by that many spaces for each
// level. Bytes that are not UTF-8 (file names may contain them) become U+FFFD.
std::string json_text(const Json& json, int indent = -1);
// Writes a value as text on one line, followed by a line feed.
std::string json_line(const Json& json);
}  // namespace trainctl
