// Starts the ranks of a user's command: this process starts them and waits, or is the only rank.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "parallel/comm/same_on_all.h"
#include "parallel/launch/supervisor/supervisor.h"

namespace trainctl {

struct ClusterOptions;
struct LaunchFlags;
struct LaunchPlan;
struct RankCommand;
struct Situation;

// The properties of a command's config that the start of ranks depends on.
struct LaunchedConfig {
  std::string file;   // empty: the command has no config
  std::string files;  // the texts of the config's files, see pass_config()
  // Returns the names of the environment variables that the config refers to.
  std::function<std::vector<std::string>()> variables;
};

// Returns the plan if this process was started by a user and has to start ranks. Returns an empty optional if this
// process is a rank itself, or the only one; in that case it may execute itself again with another environment. If the
// ranks may start again after failures, a single rank also gets a process of its own. Throws like require_min_ranks().
// Contacts the given hosts, and throws Error{peer} if a host cannot take part (check_hosts()).
std::optional<LaunchPlan> plan_ranks(const ClusterOptions& cluster, const LaunchFlags& flags,
                                     const LaunchedConfig& config, const Situation& situation, int most_restarts = 0);

// Returns the command that each rank runs. `config`: the whole resolved config. `options`: further options that must be
// equal on all ranks, in the order of the command line.
RankCommand rank_command(const std::string& name, const Node& config, const ClusterOptions& cluster,
                         const LaunchFlags& flags, const RankValues& options = {});

// Starts this command line under mpirun, waits for its end, and returns its outcome: that of the last attempt.
Outcome run_ranks(const LaunchPlan& plan, const SupervisionOptions& options, const Restarts& restarts = {});

// Calls plan_ranks() and, if there is a plan, run_ranks(); then reports errors and returns the exit code. Held output
// is a JSON document. Ranks that stop in order, since they save a state, are started again after failures as the
// cluster's options say: on the hosts that answer, and with fewer ranks if hosts are lost.
std::optional<int> supervise_ranks(const ClusterOptions& cluster, const LaunchFlags& flags,
                                   const LaunchedConfig& config, const Situation& situation,
                                   const SupervisionOptions& options);

}  // namespace trainctl
