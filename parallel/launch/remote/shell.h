// Runs a shell command on many hosts at the same time.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <ctime>
#include <string>
#include <vector>

#include "parallel/comm/environment.h"
#include "parallel/launch/variables.h"

namespace trainctl {

// Returns the command with which mpirun starts daemons, without the host and the command that are appended to it:
// OMPI_MCA_plm_rsh_agent (OpenMPI 5: PRTE_MCA_plm_ssh_agent, MPICH: HYDRA_LAUNCHER_EXEC) or ssh. Empty if no such
// command is installed.
std::vector<std::string> shell_agent(const Variables& variables, MpiLibrary mpi = mpi_library());

// The result of the command on a host.
struct RemoteAnswer {
  std::string host;
  bool ended = false;  // false: it did not end in time
  int status = 0;      // status of the agent, from waitpid()
  std::string output, errors;
  std::time_t begin = 0, end = 0;  // start and end time by this host's clock

  bool good() const;
  // Returns why the command failed: the last line of standard error, otherwise the exit code or signal.
  std::string why(std::chrono::milliseconds deadline) const;
};

// Runs the script on all hosts at the same time. Returns when all scripts have ended or after the deadline, when the
// remaining scripts are killed. If `input` is not empty, it is a command line of this host; its output is the script's
// input.
std::vector<RemoteAnswer> run_on_hosts(const std::vector<std::string>& agent, const std::vector<std::string>& hosts,
                                       const std::string& script, std::chrono::milliseconds deadline,
                                       const std::string& input = "");

}  // namespace trainctl
