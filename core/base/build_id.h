// Identifies the build of the program that this process runs.
#pragma once

#include <string>

namespace trainctl {

// Returns hexadecimal digits that identify the running program file: the linker's build id, or a hash of the file if
// the linker wrote none.
std::string build_id();

}  // namespace trainctl
