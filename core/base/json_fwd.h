// The name of JSON values alone, for headers.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace trainctl {
using Json = nlohmann::ordered_json;

// In one line, with its break; what is not UTF-8 (names of files may be anything) is replaced.
std::string json_line(const Json& json);
}  // namespace trainctl
