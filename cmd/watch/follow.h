// Showing runs that other processes train, until they end.
#pragma once

#include <string>

namespace trainctl {

// Shows a run until it ends: on a terminal its epochs as they come, above the bar and the state; elsewhere lines of
// epochs and, every few seconds, of steps. `quiet`: only waits. Returns the exit code: 0 when the run has ended,
// however it did, or nobody reads on; 130 after a request to stop.
int follow_run(const std::string& directory, bool quiet);

// Shows all runs in a folder that are starting or running, or have given no sign of life for less than a day: once, or
// on a terminal until none is left. Throws Error{config} where there is no such folder.
int follow_all(const std::string& folder, bool quiet);

}  // namespace trainctl
