// Asks hosts in a child process whether they can take part, so that this process does not wait for them.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "parallel/launch/remote/host_check.h"

namespace trainctl {

class HostProbe {
 public:
  // Starts to ask the hosts, as unavailable_hosts() does. This process must have no other threads. If no child process
  // can be started, all hosts count as unavailable.
  HostProbe(const std::vector<std::string>& hosts, const HostCheck& how);
  ~HostProbe();
  HostProbe(const HostProbe&) = delete;
  HostProbe& operator=(const HostProbe&) = delete;

  // Returns the hosts that can take part; empty while answers are missing. Does not wait.
  std::optional<std::vector<std::string>> available();

 private:
  int answers_ = -1;    // the child writes a line for each available host, and a line "." at the end
  std::string text_;    // read so far
  bool ended_ = false;  // whether the child has closed the pipe
};

}  // namespace trainctl
