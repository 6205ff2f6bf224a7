// The forward declaration of JSON values, for headers.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace trainctl {
using Json = nlohmann::ordered_json;

// Writes a value as one line with its line break. Bytes that are not UTF-8, which names of files may hold, become
// U+FFFD.
std::string json_line(const Json& json);
}  // namespace trainctl
