// Asks the other hosts of a launch plan whether they can take part.
#include "parallel/launch/remote/asked_hosts.h"

#include <algorithm>
#include <utility>

#include "core/base/format.h"
#include "core/base/log.h"
#include "parallel/launch/host/network.h"
#include "parallel/launch/host/process.h"
#include "parallel/launch/host/resources.h"
#include "parallel/launch/remote/shell.h"
#include "parallel/launch/slurm/nodes.h"

namespace trainctl {

HostCheck host_check(const LaunchRequest& request, const LaunchPlan& plan) {
  const bool asks_nodes = plan.hosts.empty();
  HostCheck how{asks_nodes ? node_agent() : shell_agent(request.variables), own_path(),
                resources_needed(plan.ranks).temporary};
  how.needs_route = !asks_nodes;  // srun has a connection of its own
  if (plan.start_timeout.count() > 0) how.deadline = std::min(how.deadline, plan.start_timeout);
  return how;
}

void ask_hosts(const LaunchRequest& request, bool sync, LaunchPlan& plan) {
  const HostCheck how = host_check(request, plan);
  if (plan.tf_config || plan.other_hosts.empty() || how.agent.empty()) return;
  if (sync) {
    for (const std::string& host : sync_hosts(plan.other_hosts, how)) log::info(format("sent trainctl to {}", host));
  }
  const CheckedHosts checked = check_hosts(plan.other_hosts, how);
  for (const std::string& warning : checked.warnings) log::warning(warning);
  if (request.network.empty()) {
    NetworkChoice choice = choose_network(own_networks(), checked.addresses);
    LaunchRequest joined = request;
    joined.network = std::move(choice.joining);
    joined.useless_networks = std::move(choice.useless);
    plan = plan_launch(joined);
  }
  plan.hosts_answer = true;
}

}  // namespace trainctl
