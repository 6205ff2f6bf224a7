// Finds the remote shells of a plan's hosts.
#include "parallel/launch/watch/reach.h"

#include "core/base/format.h"
#include "parallel/launch/host/process.h"
#include "parallel/launch/hosts.h"
#include "parallel/launch/plan.h"
#include "parallel/launch/remote/shell.h"

namespace trainctl {
namespace {

// A step of the job that shares the processors with the step of mpirun's daemons.
std::vector<std::string> srun_words(const std::string& srun, const std::string& node) {
  return {srun,         "--overlap",    "--quiet", format("--nodelist={}", node),
          "--nodes=1",  "--ntasks=1",   "--mem=0", "--unbuffered",
          "--mpi=none", "--export=ALL", "sh",      "-c"};
}

}  // namespace

std::vector<ReachableHost> reachable_hosts(const LaunchPlan& plan, const Variables& variables) {
  std::vector<ReachableHost> hosts;
  if (plan.tf_config) return hosts;
  if (plan.first_rank_here) hosts.push_back({this_host(), {}});
  if (plan.one_host) return hosts;
  if (plan.hosts.empty()) {
    const std::string srun = find_program("srun");
    const std::string own = variables.text("SLURMD_NODENAME");
    if (srun.empty() || own.empty() || plan.nodes.empty()) return {};
    for (const std::string& node : plan.nodes) {
      if (node != own) hosts.push_back({node, srun_words(srun, node)});
    }
    return hosts;
  }
  const std::vector<std::string> agent = shell_agent(variables, plan.mpi);
  if (agent.empty() && !plan.other_hosts.empty()) return {};
  for (const std::string& host : plan.other_hosts) {
    std::vector<std::string> shell = agent;
    shell.push_back(host);
    hosts.push_back({host, std::move(shell)});
  }
  return hosts;
}

}  // namespace trainctl
