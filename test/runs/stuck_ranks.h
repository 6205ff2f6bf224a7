// Runs in which one rank is suspended without a message, as by a host that hangs.
#pragma once

#include <string>
#include <vector>

#include "test/support/command.h"

namespace trainctl::test {

struct StuckRun {
  int ranks = 2;
  std::vector<std::string> settings;  // arguments of --set
  int stopped = 0;                    // the rank that is suspended
  int step = 2;                       // the step after which it is suspended
  std::vector<std::string> more;      // further arguments
  std::vector<std::string> variables;
};

// Writes a config with frequent validation and checkpoints that trains until it is stopped; returns the path of the
// file.
std::string stuck_config(const Folder& folder);

// Executes all runs, some at a time, and suspends a rank of each. Each run must end within the timeout and a few
// seconds, with exit code 5 and an error that names only the suspended rank, and leave no process. Returns the
// violations; empty if there are none.
std::vector<std::string> problems_of(const Folder& folder, const std::vector<StuckRun>& runs);

}  // namespace trainctl::test
