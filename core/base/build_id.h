// Which build of the program this process runs.
#pragma once

#include <string>

namespace trainctl {

// Returns hexadecimal digits that identify the running program file: the linker's build id, or a hash of the file where
// the linker wrote none.
std::string build_id();

}  // namespace trainctl
