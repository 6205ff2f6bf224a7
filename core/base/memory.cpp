// Free memory as Linux states it.
#include "core/base/memory.h"

#include <algorithm>
#include <fstream>

#include "core/base/control_groups.h"

namespace trainctl {
namespace {

// What the files of a control group are called.
struct GroupFiles {
  const char *limit, *used;
  const char *active_files, *inactive_files;  // keys of memory.stat
};

constexpr GroupFiles files_of_1 = {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_active_file",
                                   "total_inactive_file"};
constexpr GroupFiles files_of_2 = {"memory.max", "memory.current", "active_file", "inactive_file"};

// Bytes that a group has left, nothing where it sets no limit. Memory that holds the contents of files counts as free:
// the kernel takes it back before it ends a process.
std::optional<std::int64_t> left_in(const ControlGroup& group) {
  const GroupFiles& files = group.version == 1 ? files_of_1 : files_of_2;
  std::optional<std::int64_t> limit = number_in(group, files.limit);
  if (group.version == 1) {  // this one also has the limits of groups that a container cannot see
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
    if (const auto left = left_in(group)) available = std::min(available.value_or(*left), *left);
  }
  return available;
}

}  // namespace trainctl
