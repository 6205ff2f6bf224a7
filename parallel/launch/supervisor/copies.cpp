// Removes copies here, and on other hosts by a shell command.
#include "parallel/launch/supervisor/copies.h"

#include <chrono>
#include <filesystem>

#include "core/base/format.h"
#include "core/base/generation.h"
#include "core/base/log.h"
#include "core/base/memory_folder.h"
#include "core/base/shell_words.h"
#include "parallel/launch/agent/chief.h"
#include "parallel/launch/plan.h"
#include "parallel/launch/remote/shell.h"
#include "parallel/launch/slurm/nodes.h"

namespace trainctl {
namespace {

std::string folder_of(const std::string& log) {
  return memory_folder_of(std::filesystem::path(log).parent_path().string());
}

}  // namespace

void remove_copies_here(const std::string& log, const std::string& launch) {
  if (log.empty()) return;
  const std::string folder = folder_of(log);
  if (are_copies_of(folder, launch)) remove_memory_folder(folder);
}

void HostsOfCopies::add(const LaunchPlan& plan) {
  if (plan.one_host) return;
  mpi_ = plan.mpi;
  has_launch_agents_ = plan.tf_config.has_value();
  if (!plan.hosts.empty()) return hosts_.insert(plan.other_hosts.begin(), plan.other_hosts.end());
  const std::vector<std::string> nodes = other_nodes(plan.nodes, Variables::of_process());
  nodes_.insert(nodes.begin(), nodes.end());
}

void HostsOfCopies::remove_copies(const std::string& log, const std::string& launch) const {
  if (log.empty()) return;
  constexpr std::chrono::seconds deadline(5);
  // The user may have another number on another host.
  const std::string name = shell_word(std::filesystem::path(folder_of(log)).filename().string());
  // A killed rank may still write a file while the folder is removed.
  const std::string script = format(
      "d=/dev/shm/trainctl-$(id -u); c=\"$d\"/{}; [ -O \"$c\" ] && grep -qs {} \"$c\"/lock || exit 0; "
      "rm -rf \"$c\" || {{ sleep 1; rm -rf \"$c\"; }}; rmdir \"$d\" 2>/dev/null; true",
      name, shell_word("^" + line_of_launch(launch)));
  const auto remove = [&](const std::set<std::string>& hosts, const std::vector<std::string>& agent) {
    if (hosts.empty() || agent.empty()) return;
    for (const RemoteAnswer& answer : run_on_hosts(agent, {hosts.begin(), hosts.end()}, script, deadline)) {
      if (answer.good()) continue;
      log::debug(format("copies in memory may be left on {}: {}", answer.host, answer.why(deadline)));
    }
  };
  remove(hosts_, has_launch_agents_ ? remote_shell_words() : shell_agent(Variables::of_process(), mpi_));
  remove(nodes_, node_agent());
}

}  // namespace trainctl
