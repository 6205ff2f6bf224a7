// Reads the available memory from /proc/meminfo and the control groups.
#include "core/base/memory.h"

#include <algorithm>
#include <fstream>

#include "core/base/control_groups.h"

namespace trainctl {
namespace {

// The names of the files of a control group.
struct GroupFiles {
  const char *limit, *used;
  const char *active_files, *inactive_files;  // keys of memory.stat
};

constexpr GroupFiles version_1_files = {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_active_file",
                                        "total_inactive_file"};
constexpr GroupFiles version_2_files = {"memory.max", "memory.current", "active_file", "inactive_file"};

// The number of bytes that a group may still allocate; empty if the group has no limit. The page cache counts as free:
// the kernel reclaims it before it kills a process.
std::optional<std::int64_t> bytes_left(const ControlGroup& group) {
  const GroupFiles& files = group.version == 1 ? version_1_files : version_2_files;
  std::optional<std::int64_t> limit = number_in(group, files.limit);
  if (group.version == 1) {  // this key includes the limits of outer groups that a container cannot see
    const auto inherited = number_of_key(group, "memory.stat", "hierarchical_memory_limit");
    if (inherited) limit = std::min(limit.value_or(*inherited), *inherited);
  }
  if (!limit) return {};
  const std::int64_t cached = number_of_key(group, "memory.stat", files.active_files).value_or(0) +
                              number_of_key(group, "memory.stat", files.inactive_files).value_or(0);
  const std::int64_t used = number_in(group, files.used).value_or(0);
  return std::max<std::int64_t>(0, *limit - std::max<std::int64_t>(0, used - cached));
}

}  // namespace

std::optional<std::int64_t> available_memory(const std::string& root) {
  std::optional<std::int64_t> available;
  std::ifstream meminfo(root + "/proc/meminfo");
  for (std::string key, unit; meminfo >> key;) {
    std::int64_t kilobytes = 0;
    meminfo >> kilobytes;
    std::getline(meminfo, unit);
    if (key == "MemAvailable:") available = kilobytes * 1024;
  }
  for (const ControlGroup& group : control_groups("memory", root)) {
    if (const auto left = bytes_left(group)) available = std::min(available.value_or(*left), *left);
  }
  return available;
}

}  // namespace trainctl
