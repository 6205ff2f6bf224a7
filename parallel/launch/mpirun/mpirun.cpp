// The known launchers, and their common functions.
#include "parallel/launch/mpirun/mpirun.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/format.h"
#include "parallel/launch/plan.h"

namespace trainctl {

std::unique_ptr<Mpirun> mpirun_of(MpiLibrary library) {
  switch (library) {
    case MpiLibrary::openmpi4:
      return openmpi_mpirun(4);
    case MpiLibrary::openmpi5:
      return openmpi_mpirun(5);
    case MpiLibrary::mpich:
      return mpich_mpirun();
    case MpiLibrary::other:
      break;
  }
  throw Error(
      ErrorKind::config,
      format("trainctl can start ranks with OpenMPI 4 and 5 and with MPICH, but runs with {}", mpi_versions().found),
      "use --ranks 1, or start the ranks yourself: mpirun -n 2 trainctl run CONFIG");
}

bool has_users(const LaunchPlan& plan) {
  return std::any_of(plan.hosts.begin(), plan.hosts.end(),
                     [](const Host& host) { return host.name != without_user(host.name); });
}

std::string host_list(const LaunchPlan& plan) {
  if (plan.one_host) return format("localhost:{}", plan.ranks);
  std::string list;
  for (const Host& host : plan.hosts) list += format("{}{}:{}", list.empty() ? "" : ",", host.name, host.slots);
  return list;
}

}  // namespace trainctl
