// A command of a shell on many hosts at once.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <ctime>
#include <string>
#include <vector>

#include "parallel/comm/environment.h"
#include "parallel/launch/variables.h"

namespace trainctl {

// The agent that mpirun would start daemons with, as words that a host and a command follow: OMPI_MCA_plm_rsh_agent
// (OpenMPI 5: PRTE_MCA_plm_ssh_agent, MPICH: HYDRA_LAUNCHER_EXEC) or ssh. Empty where neither is installed.
std::vector<std::string> shell_agent(const Variables& variables, MpiLibrary mpi = mpi_library());

// What became of the command on a host.
struct RemoteAnswer {
  std::string host;
  bool ended = false;  // in time
  int status = 0;      // as of waitpid(), of the agent
  std::string output, errors;
  std::time_t begin = 0, end = 0;  // by this host's clock

  bool good() const;
  // The last line that the shell, or the agent, had to say; else how it ended.
  std::string why(std::chrono::milliseconds deadline) const;
};

// Runs the script on all hosts at the same time, and returns when all have ended or the time is over, which ends the
// rest. The output of `input`, a command line of this host's shell, is the script's input where it is not empty.
std::vector<RemoteAnswer> run_on_hosts(const std::vector<std::string>& agent, const std::vector<std::string>& hosts,
                                       const std::string& script, std::chrono::milliseconds deadline,
                                       const std::string& input = "");

}  // namespace trainctl
