// How the supervisor reaches the hosts of a plan with a command that it can write to and read from.
#pragma once

#include <string>
#include <vector>

#include "parallel/launch/variables.h"

namespace trainctl {

struct LaunchPlan;

// A host of a plan, and the words before a shell command that run the command there; no words: this host.
struct ReachableHost {
  std::string name;
  std::vector<std::string> shell;
};

// Returns the hosts of the plan that have ranks: this host, others by the remote shell with which mpirun starts its
// daemons or through the launch agents of TF_CONFIG, and other nodes of a SLURM job by srun. Empty if not all of them
// can be reached like this.
std::vector<ReachableHost> reachable_hosts(const LaunchPlan& plan, const Variables& variables);

}  // namespace trainctl
