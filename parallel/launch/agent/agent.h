// The launch agent: the process of each task of TF_CONFIG except the chief. It runs the commands on its host that the
// chief's mpirun would otherwise start there by ssh.
#pragma once

#include <chrono>
#include <string>

#include "parallel/launch/supervisor/stopping.h"
#include "parallel/launch/tf_config/tf_config.h"

namespace trainctl {

// How long an agent waits; 0: no limit.
struct AgentPatience {
  std::chrono::milliseconds start{0};  // for the chief to connect: ClusterOptions::start_deadline()
  std::chrono::milliseconds stop{0};   // for ranks that save when they are asked to stop: cluster.timeout
  StopLimits least = {};               // the least times for stopping, even if `stop` is shorter
};

// Serves the chief on this task's port until the chief reports how the job has ended, and returns that exit code. No
// command of the chief is left running, and no copies of the run's state are left in shared memory. Throws Error{peer}
// if no chief connects in time, if the chief disconnects without a report, or if the ranks of this host do not stop in
// time after a request to stop. Throws Error{stopped} if the request comes before the chief, and Error{interrupted} if
// the request asks for an immediate end.
int serve_as_agent(const TfConfig& config, const std::string& secret, const AgentPatience& patience);

}  // namespace trainctl
