// The names that an expression gives to the values that it reads.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/spec/reader.h"

namespace trainctl {

// Reports names that are not one for each of the `given` inputs, or not different. `node`: the section with the key
// `inputs`.
void check_input_names(std::vector<std::string> names, std::size_t given, const Node& node, Reader& reader);

}  // namespace trainctl
