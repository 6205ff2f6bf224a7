// Identifies the build of the program that this process runs.
#pragma once

#include <string>
#include <string_view>

namespace trainctl {

// The version of this build, such as "1.0.0".
std::string_view version();

// Returns hexadecimal digits that identify the running program file: the linker's build id, or a hash of the file if
// the linker wrote none.
std::string build_id();

}  // namespace trainctl
