// Makes names of supervisors, and finds the process of one.
#include "parallel/launch/supervisor/launch_name.h"

#include <unistd.h>

#include <charconv>
#include <chrono>

#include "core/base/format.h"
#include "core/base/supervisor_lock.h"
#include "parallel/launch/host/process.h"
#include "parallel/launch/hosts.h"

namespace trainctl {

std::string launch_name() {
  const auto time = std::chrono::system_clock::now().time_since_epoch();
  return format("{}-{}-{}", this_host(), getpid(), std::chrono::duration_cast<std::chrono::microseconds>(time).count());
}

std::optional<bool> supervisor_runs(const std::string& launch) {
  const std::string here = this_host();
  if (host_of_launch(launch) != here) return {};
  int process = 0;
  const char *begin = launch.data() + here.size() + 1, *end = launch.data() + launch.size();
  const auto [rest, problem] = std::from_chars(begin, end, process);
  if (problem != std::errc() || rest == end || *rest != '-' || process <= 0) return {};
  return !has_ended(process);
}

}  // namespace trainctl
