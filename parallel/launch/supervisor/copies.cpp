// Removes copies here, and on other hosts by a shell command.
#include "parallel/launch/supervisor/copies.h"

#include <chrono>
#include <filesystem>

#include "core/base/format.h"
#include "core/base/generation.h"
#include "core/base/log.h"
#include "core/base/memory_folder.h"
#include "parallel/launch/host/shell_words.h"
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

void remove_copies_elsewhere(const LaunchPlan& plan, const std::string& log, const std::string& launch) {
  if (log.empty() || plan.one_host || plan.tf_config) return;
  constexpr std::chrono::seconds deadline(5);
  const Variables variables = Variables::of_process();
  const bool asks_nodes = plan.hosts.empty();
  const std::vector<std::string> agent = asks_nodes ? node_agent() : shell_agent(variables, plan.mpi);
  if (agent.empty()) return;
  // The user may have another number on another host.
  const std::string name = shell_word(std::filesystem::path(folder_of(log)).filename().string());
  // A killed rank may still write a file while the folder is removed.
  const std::string script = format(
      "d=/dev/shm/trainctl-$(id -u); c=\"$d\"/{}; [ -O \"$c\" ] && grep -qs {} \"$c\"/lock || exit 0; "
      "rm -rf \"$c\" || {{ sleep 1; rm -rf \"$c\"; }}; rmdir \"$d\" 2>/dev/null; true",
      name, shell_word("^" + line_of_launch(launch)));
  const std::vector<std::string> hosts = asks_nodes ? other_nodes(plan.nodes, variables) : plan.other_hosts;
  for (const RemoteAnswer& answer : run_on_hosts(agent, hosts, script, deadline)) {
    if (!answer.good()) log::debug(format("copies in memory may be left on {}: {}", answer.host, answer.why(deadline)));
  }
}

}  // namespace trainctl
