// One attempt to run the ranks: mpirun is prepared, started and watched until nothing of it is left.
#pragma once

#include <string>
#include <vector>

#include "parallel/launch/plan.h"
#include "parallel/launch/supervisor/mpirun_watch.h"
#include "parallel/launch/supervisor/outcome.h"

namespace trainctl {

// Runs `command` (a program and its arguments) as the plan's ranks, and heeds the requests that come to `supervision`.
// When this returns, no rank is left on this host and no temporary file. Throws Error{config} where there is no mpirun,
// Error{resource} where it cannot be started.
Outcome run_attempt(const LaunchPlan& plan, const std::vector<std::string>& command, const SupervisionOptions& options,
                    Supervision& supervision);

}  // namespace trainctl
