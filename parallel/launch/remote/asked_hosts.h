// Asks the other hosts of a launch plan whether they can take part.
#pragma once

#include "parallel/launch/plan.h"
#include "parallel/launch/remote/host_check.h"

namespace trainctl {

// Returns the parameters with which the hosts of a plan are checked: those that the user has named through a remote
// shell, the nodes of a SLURM job through srun. Without such a program `agent` is empty.
HostCheck host_check(const LaunchRequest& request, const LaunchPlan& plan);

// Checks the other hosts of a plan, and plans again if their addresses show which network connects them. With `sync`
// sends trainctl to hosts that do not have it. Throws Error{peer} if a host cannot take part.
void ask_hosts(const LaunchRequest& request, bool sync, LaunchPlan& plan);

}  // namespace trainctl
