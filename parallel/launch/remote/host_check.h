// Other hosts of a run: asked before anything starts there, and sent what they lack.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace trainctl {

// What the hosts are asked with.
struct HostCheck {
  std::vector<std::string> agent;  // as of shell_agent()
  std::string program;             // the path that is to hold the same file on every host
  std::int64_t temporary = 0;      // bytes that mpirun's daemon needs in the folder for temporary files there
  std::chrono::milliseconds deadline{10000};
};

// What hosts that can take part have said.
struct CheckedHosts {
  std::vector<std::string> warnings;                // clocks that are more than 5 s off
  std::vector<std::vector<std::string>> addresses;  // of each host: all of IPv4 but loopback; none where unknown
};

// Asks all hosts at once whether they answer, hold the program, have room and this host's time. What a login script of
// a host prints does no harm. Throws Error{peer} that names every host that does not answer in time, lacks the
// program or holds another one, or whose disk is full.
CheckedHosts check_hosts(const std::vector<std::string>& hosts, const HostCheck& how);

// Sends the installation of how.program to the hosts that lack the program or hold another one, to the same place.
// Where that is cut off, the program's hash is not the same, and the next call sends it again. Returns those hosts.
// Throws Error{peer} that names every host on which it could not be written.
std::vector<std::string> sync_hosts(const std::vector<std::string>& hosts, const HostCheck& how);

}  // namespace trainctl
