// Reads texts from the information about ranks.
#pragma once

#include <string>

#include "core/base/json.h"

namespace trainctl {

// Returns a text; `otherwise` if the value is not a text.
inline std::string text_of(const Json& value, const char* otherwise = "") {
  return value.is_string() ? value.get<std::string>() : otherwise;
}

}  // namespace trainctl
