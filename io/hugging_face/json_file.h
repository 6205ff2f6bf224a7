// Reads the JSON files of a Hugging Face folder.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/json_fwd.h"

namespace trainctl {

// Returns the JSON object in a file. Throws Error{data} if the file is missing, has more than `limit` bytes, has more
// than 100 levels, or is not a JSON object.
Json read_json_object(const std::string& path, std::int64_t limit);

}  // namespace trainctl
