// Removes the copies of a run's state in shared memory (core/base/memory_folder.h) at the end of the run.
#pragma once

#include <string>

namespace trainctl {

struct LaunchPlan;

// Removes the copies on this host. `log`: the path of the run's log; "": there is no run.
void remove_copies_here(const std::string& log);

// Removes the copies on the other hosts of the plan that can be reached, within a few seconds. Ranks that end by
// themselves remove them; this function is for ranks that were killed.
void remove_copies_elsewhere(const LaunchPlan& plan, const std::string& log);

}  // namespace trainctl
