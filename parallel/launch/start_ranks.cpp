// Plans, starts and supervises the ranks of a command.
#include "parallel/launch/start_ranks.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <utility>

#include "core/base/build_id.h"
#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/log.h"
#include "core/base/table.h"
#include "parallel/launch/agent/chief.h"
#include "parallel/launch/agent/secret.h"
#include "parallel/launch/config_text.h"
#include "parallel/launch/host/network.h"
#include "parallel/launch/host/process.h"
#include "parallel/launch/host/resources.h"
#include "parallel/launch/plan.h"
#include "parallel/launch/ranks/report.h"
#include "parallel/launch/ranks/run_rank.h"
#include "parallel/launch/remote/host_check.h"
#include "parallel/launch/remote/shell.h"
#include "parallel/launch/supervisor/resize.h"
#include "parallel/launch/supervisor/supervisor.h"
#include "parallel/launch/watch/host_agent.h"

namespace trainctl {
namespace {

// Returns the command line of this process; the first word is the absolute path of the program.
std::vector<std::string> own_command() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  words.front() = own_path();
  return words;
}

// Executes this process again with these variables, since libgomp reads its settings when it is loaded. Returns if no
// variable has to be set, as in the second execution.
void start_again_with(const Variables::Map& environment) {
  if (environment.empty()) return;
  for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
  std::vector<std::string> words = own_command();
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execv(arguments.front(), arguments.data());  // if it fails, threads spin
}

// Ends the wait of launch agents if their hosts get no ranks.
void dismiss_agents(const LaunchPlan& plan) {
  if (!plan.tf_config || plan.tf_config->tasks.size() == 1) return;
  Leases(*plan.tf_config, secret_for(*plan.tf_config, Variables::of_process()), plan.start_timeout).end(0);
}

HostCheck host_check(const LaunchRequest& request, const LaunchPlan& plan) {
  HostCheck how{shell_agent(request.variables), own_path(), resources_needed(plan.ranks).temporary};
  if (plan.start_timeout.count() > 0) how.deadline = std::min(how.deadline, plan.start_timeout);
  return how;
}

// Checks the other hosts of a plan, and plans again if their addresses show which network connects them. Throws if a
// host cannot take part.
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

LaunchRequest request_of(const ClusterOptions& cluster, const LaunchFlags& flags, const LaunchedConfig& config) {
  LaunchRequest request = launch_request(cluster, flags);
  if (!config.file.empty()) request.forwarded = config.variables();
  return request;
}

// Removes from a request the host that a failed attempt has lost and those that do not answer, and limits its ranks to
// those that can train on the other hosts: a whole number of replicas, and at most `wanted`. `plan`: the plan of the
// whole request. Throws Error{peer} if too few ranks are left.
void keep_answering_hosts(LaunchRequest& request, const LaunchPlan& plan, const Outcome& failure, int wanted,
                          const ClusterOptions& cluster) {
  auto lost = unavailable_hosts(plan.other_hosts, host_check(request, plan));
  if (lost.empty() && (failure.kind == OutcomeKind::host_lost || failure.kind == OutcomeKind::host_unreachable)) {
    for (const std::string& host : plan.other_hosts) {
      if (without_user(host) == failure.host) lost.emplace_back(host, "the attempt before was lost by it");
    }
  }
  for (const auto& [host, problem] : lost) {
    log::warning(format("{} cannot take part: {}", host, problem));
    std::erase_if(request.hosts, [&name = host](const Host& each) { return each.name == name; });
  }
  const int replica = cluster.ranks_of_replica, slots = total_slots(request.hosts);
  const int ranks = std::min(wanted, slots) / replica * replica, least = std::max(cluster.restarts.min_ranks, replica);
  if (ranks < std::min(least, wanted)) {
    throw Error(ErrorKind::peer,
                format("the hosts that answer have {} slots, and the run needs at least {} ranks", slots, least),
                "start the run again when the hosts are back");
  }
  request.ranks = ranks;
}

// Plans the attempts of a run after the first one.
class LaterPlans {
 public:
  LaterPlans(const ClusterOptions& cluster, const LaunchFlags& flags, const LaunchedConfig& config)
      : cluster_(cluster), flags_(flags), config_(config) {}

  // Returns the plan of the next attempt: on the hosts of the config that answer now.
  LaunchPlan next(const LaunchPlan& before, const Outcome& outcome) const {
    LaunchRequest request = request_again(before.wanted_ranks);
    if (before.tf_config || request.hosts.size() < 2 || shell_agent(request.variables).empty()) return before;
    keep_answering_hosts(request, plan_launch(request), outcome, before.wanted_ranks, cluster_);
    LaunchPlan plan = plan_launch(request);
    ask_hosts(request, false, plan);
    plan.wanted_ranks = before.wanted_ranks;
    return plan;
  }

  // Returns the plan that `trainctl resize` has requested for the run in this directory; empty if there is no request.
  // A request that cannot be met is removed with a warning. Contacts no hosts.
  std::optional<LaunchPlan> requested(const std::string& run_directory) const {
    const std::optional<int> ranks = requested_ranks_of(run_directory);
    if (!ranks || !remove_request(run_directory)) return {};
    try {
      require_trainable(*ranks);
      LaunchPlan plan = plan_launch(request_again(*ranks));
      for (const std::string& warning : plan.warnings) log::warning(warning);
      return plan;
    } catch (const Error& error) {
      log::warning(
          format("the run goes on as before, since it cannot train on {}: {}", counted(*ranks, "rank"), error.what()));
      return {};
    }
  }

 private:
  LaunchRequest request_again(int ranks) const {
    LaunchRequest request = request_of(cluster_, flags_, config_);
    request.ranks = ranks;
    request.always_supervised = true;
    return request;
  }

  // Throws Error{config} if the strategy does not permit this number of ranks.
  void require_trainable(int ranks) const {
    const int replica = cluster_.ranks_of_replica;
    if (ranks % replica != 0) {
      throw Error(ErrorKind::config, format("a replica has {}", counted(replica, "rank")),
                  format("request a multiple of {}", replica));
    }
    if (cluster_.fixed_ranks && ranks != *cluster_.fixed_ranks) {
      throw Error(ErrorKind::config, format("strategy.data fixes the number of ranks at {}", *cluster_.fixed_ranks),
                  "leave `data` out of the strategy");
    }
    if (cluster_.max_ranks && ranks > *cluster_.max_ranks) {
      throw Error(ErrorKind::config,
                  format("the strategy has logical shards for at most {}", counted(*cluster_.max_ranks, "rank")),
                  "request fewer ranks");
    }
  }

  const ClusterOptions& cluster_;
  const LaunchFlags& flags_;
  const LaunchedConfig& config_;
};

}  // namespace

std::optional<LaunchPlan> plan_ranks(const ClusterOptions& cluster, const LaunchFlags& flags,
                                     const LaunchedConfig& config, const Situation& situation, bool always_supervised) {
  if (situation.started_by != StartedBy::user) return std::nullopt;
  if (!config.file.empty()) pass_config(config.file, config.files);
  LaunchRequest request = request_of(cluster, flags, config);
  request.always_supervised = always_supervised;
  LaunchPlan plan = plan_launch(request);
  if (flags.sync && plan.hosts.empty()) {
    throw Error(ErrorKind::config, "--sync sends trainctl to the hosts of a run, but this run names no hosts",
                "name the hosts (--hosts, cluster.hosts)");
  }
  for (const std::string& warning : plan.warnings) log::warning(warning);
  if (!plan.mpirun.empty()) {
    ask_hosts(request, flags.sync, plan);
    return plan;
  }
  dismiss_agents(plan);
  start_again_with(plan.environment);
  return std::nullopt;
}

Outcome run_ranks(const LaunchPlan& plan, const SupervisionOptions& options, const Restarts& restarts) {
  if (!plan.tf_config) return run_supervised(plan, own_command(), options, restarts);
  const std::string secret = secret_for(*plan.tf_config, Variables::of_process());
  Leases agents(*plan.tf_config, secret, plan.start_timeout);
  Outcome ranks = run_supervised(plan, own_command(), options, restarts);
  agents.end(ranks.end.exit_code);
  return ranks;
}

RankCommand rank_command(const std::string& name, const Node& config, const ClusterOptions& cluster,
                         const LaunchFlags& flags, const RankValues& options) {
  RankCommand command;
  command.values = {{"the build of trainctl", build_id()},
                    {"the command", name},
                    {"--ranks", flags.ranks.empty() ? "not given" : flags.ranks}};
  command.values.insert(command.values.end(), options.begin(), options.end());
  add_document(command.values, config);
  command.requested_ranks = requested_ranks(cluster, flags.ranks);
  command.deadline = cluster.deadline();
  return command;
}

std::optional<int> supervise_ranks(const ClusterOptions& cluster, const LaunchFlags& flags,
                                   const LaunchedConfig& config, const Situation& situation,
                                   const SupervisionOptions& options) {
  const int most_restarts = options.stops_in_order ? flags.max_restarts.value_or(cluster.restarts.max) : 0;
  const std::optional<LaunchPlan> plan = plan_ranks(cluster, flags, config, situation, most_restarts > 0);
  if (!plan) return std::nullopt;
  const bool json = options.holds_output;
  const LaterPlans later(cluster, flags, config);
  Restarts restarts;
  if (options.stops_in_order) {
    restarts.policy = restart_policy(most_restarts);
    restarts.next_plan = [&](const LaunchPlan& before, const Outcome& outcome) { return later.next(before, outcome); };
    restarts.changed_plan = [&](const std::string& run_directory) { return later.requested(run_directory); };
  }
  SupervisionOptions supervision = options;
  if (options.stops_in_order) supervision.watch = {cluster.hang_timeout, {own_path(), host_agent_command}};
  Outcome ranks = run_ranks(*plan, supervision, restarts);
  if (const int code = ranks.end.exit_code; code != 0 && ranks.end.message.empty() && ranks.output.empty() && json) {
    const bool stopped = code == exit_code(ErrorKind::interrupted);
    ranks.end.message = stopped ? "stopped at once" : format("the ranks ended with exit code {}", code);
  }
  if (!ranks.end.message.empty()) return report(ranks.end, json, situation);
  answer(ranks.output);
  return ranks.end.exit_code;
}

}  // namespace trainctl
