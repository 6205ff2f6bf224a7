// The launch agent: the process of each task of TF_CONFIG except the chief. It runs the commands on its host that the
// chief's mpirun would otherwise start there by ssh.
#pragma once

#include <chrono>
#include <string>

#include "parallel/launch/tf_config/tf_config.h"

namespace trainctl {

// How long an agent waits; 0: no limit.
struct AgentPatience {
  std::chrono::milliseconds start{0};  // for the chief to connect: ClusterOptions::start_deadline()
  std::chrono::milliseconds stop{0};   // for ranks that save when they are asked to stop: cluster.timeout
};

// Serves the chief on this task's port until the chief reports how the job has ended, and returns that exit code. No
// command of the chief is left running. Throws Error{peer} if no chief connects in time or if the chief disconnects
// without a report. Throws Error{interrupted} on a request to stop.
int serve_as_agent(const TfConfig& config, const std::string& secret, const AgentPatience& patience);

}  // namespace trainctl
