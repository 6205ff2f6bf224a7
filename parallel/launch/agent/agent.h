// The launch agent: what a task of TF_CONFIG that is not the chief does. It runs on its host what the chief's mpirun
// would otherwise start there by ssh.
#pragma once

#include <chrono>
#include <string>

#include "parallel/launch/tf_config/tf_config.h"

namespace trainctl {

// Serves the chief on this task's own port until the chief says how the job has ended, and returns that exit code. No
// command of the chief's is left running. Throws Error{peer} where no chief comes within `patience` (0: it waits for
// ever) or the chief goes without a word, and Error{interrupted} on a request to stop.
int serve_as_agent(const TfConfig& config, const std::string& secret, std::chrono::milliseconds patience);

}  // namespace trainctl
