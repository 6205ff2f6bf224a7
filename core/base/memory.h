// Finds out how much memory this process may still allocate.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace trainctl {

// The number of bytes that this process may still allocate: the minimum of the machine's available memory and of the
// memory left in the control groups of this process (core/base/control_groups.h). Empty if neither is known. `root` is
// a prefix of /proc and /sys for tests; "" means the real file system.
std::optional<std::int64_t> available_memory(const std::string& root = "");

}  // namespace trainctl
