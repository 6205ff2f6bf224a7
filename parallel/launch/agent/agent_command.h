// A command that a launch agent runs for the chief.
#pragma once

#include <string>

#include "parallel/launch/agent/channel.h"

namespace trainctl {

// Runs a command line by a shell and sends what it prints, then its exit code. Where the connection ends first, the
// command and all that it has started end, too. For a process that does nothing else.
void run_for_chief(AgentChannel& channel, const std::string& command);

}  // namespace trainctl
