// The chief's side of the communication with launch agents.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "parallel/launch/agent/channel.h"
#include "parallel/launch/tf_config/tf_config.h"

namespace trainctl {

// Connections to the agents of all other tasks. While they are open, the agents know that the chief runs.
class Leases {
 public:
  // Waits until all agents are connected, at most for `patience` (0: no limit). Throws Error{peer} that names the
  // missing agents, or immediately if an agent has another secret. `launch`: the name of the supervisor whose ranks the
  // agents will start (see Generation); "" if there will be none.
  Leases(const TfConfig& config, const std::string& secret, std::chrono::milliseconds patience,
         const std::string& launch = "");

  // Reports to all agents how the job has ended.
  void end(int exit_code);

 private:
  std::vector<AgentChannel> agents_;
};

// Runs a command line through the agent of a host, as ssh would, and returns its exit code; 255 if the connection is
// lost. The command reads the standard input of this process. Throws Error{config} if TF_CONFIG has no such host, and
// Error{peer} if the host's agent does not answer.
int remote_shell(const TfConfig& config, const std::string& secret, const std::string& host,
                 const std::string& command);

// The command of this program that calls remote_shell(); mpirun and the supervisor start it instead of ssh.
inline constexpr const char* remote_shell_command = "remote-shell";

// Returns the words before a host and a shell command that run the command through the agent of the host.
std::vector<std::string> remote_shell_words();

}  // namespace trainctl
