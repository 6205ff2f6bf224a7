// Other hosts of a run, asked before anything starts there.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "parallel/launch/variables.h"

namespace trainctl {

// What the hosts are asked with.
struct HostCheck {
  std::vector<std::string> agent;  // the words that run a command on a host: "ssh", "-x"; the host follows
  std::string program;             // the path that is to hold the same file on every host
  std::chrono::milliseconds deadline{10000};
};

// The agent that mpirun would start daemons with, OMPI_MCA_plm_rsh_agent or ssh, and its arguments; empty where neither
// is installed.
std::vector<std::string> shell_agent(const Variables& variables);

// Asks all hosts at once whether they answer, hold the program and have this host's time. Returns warnings, of clocks
// that are more than 5 s off. Throws Error{peer} that names every host that does not answer in time, or lacks the
// program, or holds another one.
std::vector<std::string> check_hosts(const std::vector<std::string>& hosts, const HostCheck& how);

}  // namespace trainctl
