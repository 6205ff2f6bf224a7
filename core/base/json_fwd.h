// The forward declaration of JSON values, for headers.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace trainctl {
using Json = nlohmann::ordered_json;

// Writes a value as one line that ends with a line feed. Bytes that are not UTF-8 (file names may contain them) become
// U+FFFD.
std::string json_line(const Json& json);
}  // namespace trainctl
