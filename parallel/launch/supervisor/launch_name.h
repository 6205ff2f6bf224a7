// The name of a supervisor: its host, process and time. Lock files name it as the launch of a run's ranks.
#pragma once

#include <optional>
#include <string>

namespace trainctl {

// Returns a name for the supervisor in this process.
std::string launch_name();

// Whether the supervisor of this name still runs. No value if that is unknown: it is on another host, or the text is no
// such name.
std::optional<bool> supervisor_runs(const std::string& launch);

}  // namespace trainctl
