// The memory of this machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace trainctl {

// Bytes that this process may still allocate: the least of what the machine has available and of what the control
// groups around this process (core/base/control_groups.h) allow. Empty where nothing is known. `root` is the folder in
// front of /proc and /sys, "" for the system's own.
std::optional<std::int64_t> available_memory(const std::string& root = "");

}  // namespace trainctl
