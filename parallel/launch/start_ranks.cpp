// Plans, starts and supervises the ranks of a command.
#include "parallel/launch/start_ranks.h"

#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <optional>
#include <utility>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/log.h"
#include "core/base/table.h"
#include "core/base/version.h"
#include "parallel/launch/agent/chief.h"
#include "parallel/launch/agent/secret.h"
#include "parallel/launch/config_text.h"
#include "parallel/launch/host/process.h"
#include "parallel/launch/later_plans.h"
#include "parallel/launch/plan.h"
#include "parallel/launch/ranks/report.h"
#include "parallel/launch/ranks/run_rank.h"
#include "parallel/launch/remote/asked_hosts.h"
#include "parallel/launch/supervisor/launch_name.h"
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

LaunchRequest request_of(const ClusterOptions& cluster, const LaunchFlags& flags, const LaunchedConfig& config) {
  LaunchRequest request = launch_request(cluster, flags);
  if (!config.file.empty()) request.forwarded = config.variables();
  return request;
}

}  // namespace

std::optional<LaunchPlan> plan_ranks(const ClusterOptions& cluster, const LaunchFlags& flags,
                                     const LaunchedConfig& config, const Situation& situation, int most_restarts) {
  if (situation.started_by != StartedBy::user) return std::nullopt;
  if (!config.file.empty()) pass_config(config.file, config.files);
  LaunchRequest request = request_of(cluster, flags, config);
  request.always_supervised = most_restarts > 0;
  LaunchPlan plan = plan_launch(request);
  if (most_restarts > 0) require_min_ranks(cluster, request, plan);
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
  SupervisionOptions named = options;
  named.launch = launch_name();
  Leases agents(*plan.tf_config, secret, plan.start_timeout, named.launch);
  Outcome ranks = run_supervised(plan, own_command(), named, restarts);
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
  command.start_deadline = cluster.start_deadline();
  return command;
}

std::optional<int> supervise_ranks(const ClusterOptions& cluster, const LaunchFlags& flags,
                                   const LaunchedConfig& config, const Situation& situation,
                                   const SupervisionOptions& options) {
  const int most_restarts = options.stops_in_order ? most_restarts_of(cluster, flags) : 0;
  const std::optional<LaunchPlan> plan = plan_ranks(cluster, flags, config, situation, most_restarts);
  if (!plan) return std::nullopt;
  const bool json = options.holds_output;
  LaterPlans later(cluster, [&] { return request_of(cluster, flags, config); });
  Restarts restarts;
  if (options.stops_in_order) {
    restarts.policy = restart_policy(most_restarts);
    restarts.next_plan = [&](const LaunchPlan& before, const Outcome& outcome) { return later.next(before, outcome); };
    restarts.changed_plan = [&](const LaunchPlan& now, const std::string& run_directory) {
      return later.changed(now, run_directory);
    };
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
