// What the chief of a TF_CONFIG says to the launch agents.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "parallel/launch/agent/channel.h"
#include "parallel/launch/tf_config/tf_config.h"

namespace trainctl {

// Connections to the agents of all other tasks, which tell them that the chief lives.
class Leases {
 public:
  // Waits until all are there, at most for `patience` (0: for ever). Throws Error{peer} that names those that are not,
  // or at once one that knows another secret.
  Leases(const TfConfig& config, const std::string& secret, std::chrono::milliseconds patience);

  // Tells all how the job has ended.
  void end(int exit_code);

 private:
  std::vector<AgentChannel> agents_;
};

// Runs a command line by the agent of a host, as ssh would, and returns its exit code; 255 where the connection is
// lost. Throws Error{config} where TF_CONFIG has no such host, and Error{peer} where its agent does not answer.
int remote_shell(const TfConfig& config, const std::string& secret, const std::string& host,
                 const std::string& command);

// The words with which mpirun starts remote_shell(), for a command of this program.
inline constexpr const char* remote_shell_command = "remote-shell";

}  // namespace trainctl
