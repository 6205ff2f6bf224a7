// Reads JSON that other programs wrote. The header compiles slowly, as core/base/json.h does.
#pragma once

#include <string_view>

#include "core/base/error.h"
#include "core/base/json.h"

namespace trainctl {

// The deepest nesting of lists and objects that is read. Real files have fewer levels, and each level needs memory on
// the stack.
inline constexpr int max_json_levels = 100;

// Parses a text. Throws Json::exception if it is not JSON, and Error{data} at `location` if it is nested deeper than
// max_json_levels. The memory used is proportional to the length of the text.
Json parse_json(std::string_view text, const SourceLocation& location);

}  // namespace trainctl
