// Reading JSON of foreign make. A slow header, as json.h is.
#pragma once

#include <string_view>

#include "core/base/error.h"
#include "core/base/json.h"

namespace trainctl {

// The deepest nesting of lists and objects: nobody writes more, and each level takes room on the stack.
inline constexpr int most_json_levels = 100;

// The value that a text stands for. Throws Json::exception if it is no JSON, and Error{data} at `place` if it is nested
// deeper than most_json_levels; memory stays in proportion to the text.
Json parse_json(std::string_view text, const SourceLocation& location);

}  // namespace trainctl
