// Checks the other hosts of a run before a process starts there, and sends trainctl to them.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace trainctl {

// The parameters of a check.
struct HostCheck {
  std::vector<std::string> agent;  // result of shell_agent()
  std::string program;             // path of the program, which must be the same file on every host
  std::int64_t temporary = 0;      // bytes that mpirun's daemon needs in the folder for temporary files there
  std::chrono::milliseconds deadline{10000};
  bool needs_route = true;  // whether a host without an IPv4 route is unavailable
};

// The answers of hosts that can take part.
struct CheckedHosts {
  std::vector<std::string> warnings;                // warnings about clocks that differ by more than 5 s
  std::vector<std::vector<std::string>> addresses;  // IPv4 addresses of each host without loopback; empty: unknown
};

// Checks at the same time whether all hosts answer, have the program and enough disk space, and whether their clocks
// agree with this host's. Output of login scripts is ignored. Throws Error{peer} that names every host that does not
// answer in time, has no program or a different one, or has a full disk.
CheckedHosts check_hosts(const std::vector<std::string>& hosts, const HostCheck& how);

// Asks all hosts at the same time, as check_hosts() does. Returns those that cannot take part, each with the problem;
// among them, with how.needs_route, hosts that answer but have no IPv4 route.
std::vector<std::pair<std::string, std::string>> unavailable_hosts(const std::vector<std::string>& hosts,
                                                                   const HostCheck& how);

// Sends the installation of how.program to the hosts that have no program or a different one, to the same path. If the
// transfer is interrupted, the program's hash differs, and the next call sends the installation again. Returns the
// hosts that received it. Throws Error{peer} that names every host that could not receive it.
std::vector<std::string> sync_hosts(const std::vector<std::string>& hosts, const HostCheck& how);

}  // namespace trainctl
