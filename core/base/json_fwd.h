// The name of JSON values alone, for headers.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace trainctl {
using Json = nlohmann::ordered_json;
}  // namespace trainctl
