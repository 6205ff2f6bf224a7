// Shows the progress of runs that other processes train, on standard output.
#pragma once

#include <functional>
#include <string>

namespace trainctl {

// Shows a table of the runs in a folder that are starting, running, or were active in the last 24 hours. On a terminal,
// repeats it until there are no such runs, or until `stop_requested` returns true; then returns false. `quiet`: shows
// nothing. Throws Error{config} if there is no such folder.
bool follow_all(const std::string& folder, bool quiet, const std::function<bool()>& stop_requested);

// Shows a run until it has ended in any way, until the reader of the output has closed it, or until `stop_requested`
// returns true; then returns false. On a terminal, prints a line for each epoch above the bar and the state; otherwise
// prints lines for epochs and, every few seconds, for steps. `quiet`: only waits. Throws Error{config} if the directory
// is not that of a run.
bool follow_run(const std::string& directory, bool quiet, const std::function<bool()>& stop_requested);

}  // namespace trainctl
