// The launch agent: the process of each task of TF_CONFIG except the chief. It runs the commands on its host that the
// chief's mpirun would otherwise start there by ssh.
#pragma once

#include <chrono>
#include <string>

#include "parallel/launch/tf_config/tf_config.h"

namespace trainctl {

// Serves the chief on this task's port until the chief reports how the job has ended, and returns that exit code. No
// command of the chief is left running. Throws Error{peer} if no chief connects within `patience` (0: no limit) or if
// the chief disconnects without a report. Throws Error{interrupted} on a request to stop.
int serve_as_agent(const TfConfig& config, const std::string& secret, std::chrono::milliseconds patience);

}  // namespace trainctl
