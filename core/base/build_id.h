// Which build of the program this process runs.
#pragma once

#include <string>

namespace trainctl {

// Hexadecimal digits that differ between two programs that do: the linker's build id, or a hash of the file where it
// left none.
std::string build_id();

}  // namespace trainctl
