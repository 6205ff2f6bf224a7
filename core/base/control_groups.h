// The control groups of Linux that hold this process: batch systems, containers and service managers limit memory,
// processor time and the number of processes by them, each group within the limits of the group around it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trainctl {

// A control group, as a folder whose files hold its limits.
struct ControlGroup {
  std::string folder;
  int version = 2;  // of the interface, 1 or 2: the names of the files depend on it
};

// The groups that limit this process by a controller ("memory", "cpu", "pids"), from the innermost group to the
// outermost group that this process can see. `root` is the folder in front of /proc and /sys, "" for the system's own.
std::vector<ControlGroup> control_groups(std::string_view controller, const std::string& root = "");

// The whole number in a group's file; nothing where the file is missing or holds no number, such as "max".
std::optional<std::int64_t> number_in(const ControlGroup& group, const std::string& file);

// The number behind a key in a group's file that has one key and one number in each line, such as memory.stat.
std::optional<std::int64_t> number_of_key(const ControlGroup& group, const std::string& file, std::string_view key);

}  // namespace trainctl
