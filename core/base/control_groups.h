// Finds the Linux control groups of this process. Batch systems, containers and service managers use them to limit
// memory, CPU time and the number of processes. The limits of a group also apply to the groups inside it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trainctl {

// A control group: a folder with files that hold its limits.
struct ControlGroup {
  std::string folder;
  int version = 2;  // version of the cgroup interface, 1 or 2, which decides the names of the files
};

// The groups that limit this process by a controller ("memory", "cpu", "pids"), from the innermost group to the
// outermost that this process can see. `root` is a prefix of /proc and /sys for tests; "" means the real file system.
std::vector<ControlGroup> control_groups(std::string_view controller, const std::string& root = "");

// The integer in a group's file; empty if the file is missing or holds no integer (for example "max").
std::optional<std::int64_t> number_in(const ControlGroup& group, const std::string& file);

// The number after a key in a group's file with lines of the form "KEY NUMBER", such as memory.stat; empty if the key
// is missing.
std::optional<std::int64_t> number_of_key(const ControlGroup& group, const std::string& file, std::string_view key);

}  // namespace trainctl
