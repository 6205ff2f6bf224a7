// Removes the copies of a run's state in shared memory (core/base/memory_folder.h) at the end of the run.
#pragma once

#include <string>

namespace trainctl {

struct LaunchPlan;

// Removes the copies on this host. `log`: the path of the run's log; "": there is no run. `launch`: the supervisor
// whose ranks wrote the copies; those of another start of the run stay.
void remove_copies_here(const std::string& log, const std::string& launch);

// Removes the copies on the other hosts of the plan that can be reached, within a few seconds. Ranks that end by
// themselves remove them; this function is for ranks that were killed.
void remove_copies_elsewhere(const LaunchPlan& plan, const std::string& log, const std::string& launch);

}  // namespace trainctl
