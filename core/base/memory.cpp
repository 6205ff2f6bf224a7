// Free memory as Linux states it.
#include "core/base/memory.h"

#include <algorithm>
#include <fstream>
#include <string>

namespace trainctl {
namespace {

// Reads a file that holds one number.
std::optional<std::int64_t> number_in(const char* path) {
  std::ifstream file(path);
  std::int64_t value = 0;
  return file >> value ? std::optional(value) : std::nullopt;
}

}  // namespace

std::optional<std::int64_t> available_memory() {
  std::optional<std::int64_t> available;
  std::ifstream meminfo("/proc/meminfo");
  for (std::string key, unit; meminfo >> key;) {
    std::int64_t kilobytes = 0;
    meminfo >> kilobytes;
    std::getline(meminfo, unit);
    if (key == "MemAvailable:") available = kilobytes * 1024;
  }
  // The limit of version 2 of control groups, at the path where a container sees its own group.
  if (const auto limit = number_in("/sys/fs/cgroup/memory.max")) {
    const std::int64_t left =
        std::max<std::int64_t>(0, *limit - number_in("/sys/fs/cgroup/memory.current").value_or(0));
    available = std::min(available.value_or(left), left);
  }
  return available;
}

}  // namespace trainctl
