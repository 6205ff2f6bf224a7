// Finds the remote shells of a plan's hosts.
#include "parallel/launch/watch/reach.h"

#include "parallel/launch/agent/chief.h"
#include "parallel/launch/hosts.h"
#include "parallel/launch/plan.h"
#include "parallel/launch/remote/shell.h"
#include "parallel/launch/slurm/nodes.h"

namespace trainctl {
std::vector<ReachableHost> reachable_hosts(const LaunchPlan& plan, const Variables& variables) {
  std::vector<ReachableHost> hosts;
  if (plan.first_rank_here) hosts.push_back({this_host(), {}});
  if (plan.one_host) return hosts;
  if (plan.hosts.empty()) {
    const std::vector<std::string> nodes = other_nodes(plan.nodes, variables);
    if (nodes.empty() || node_agent().empty()) return {};
    for (const std::string& node : nodes) hosts.push_back({node, node_shell(node)});
    return hosts;
  }
  const std::vector<std::string> agent = plan.tf_config ? remote_shell_words() : shell_agent(variables, plan.mpi);
  if (agent.empty() && !plan.other_hosts.empty()) return {};
  for (const std::string& host : plan.other_hosts) {
    std::vector<std::string> shell = agent;
    shell.push_back(host);
    hosts.push_back({host, std::move(shell)});
  }
  return hosts;
}

}  // namespace trainctl
