// The home of nlohmann/json. A slow header: include it from .cpp files that write or read JSON, never from a header.
#pragma once

#include <nlohmann/json.hpp>

namespace trainctl {
using Json = nlohmann::ordered_json;
}  // namespace trainctl
