// Removes the copies of a run's state in shared memory (core/base/memory_folder.h) at the end of the run.
#pragma once

#include <set>
#include <string>

#include "parallel/comm/environment.h"

namespace trainctl {

struct LaunchPlan;

// Removes the copies on this host. `log`: the path of the run's log; "": there is no run. `launch`: the supervisor
// whose ranks wrote the copies; those of another start of the run stay.
void remove_copies_here(const std::string& log, const std::string& launch);

// The other hosts on which the ranks of a run may have left copies: those of all its attempts.
class HostsOfCopies {
 public:
  // Adds the hosts of an attempt.
  void add(const LaunchPlan& plan);

  // Removes the copies on the hosts that can be reached, within a few seconds. Ranks that end by themselves remove
  // them; this function is for ranks that were killed.
  void remove_copies(const std::string& log, const std::string& launch) const;

 private:
  MpiLibrary mpi_ = MpiLibrary::openmpi4;
  bool has_launch_agents_ = false;       // whether the hosts are those of TF_CONFIG
  std::set<std::string> hosts_, nodes_;  // hosts that the user has named, and nodes of the SLURM job
};

}  // namespace trainctl
