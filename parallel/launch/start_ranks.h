// From a user's command to its ranks: this process starts them and waits, or is the only one.
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

// The config of a command, as far as ranks that are started depend on it.
struct LaunchedConfig {
  std::string file;                                     // empty: the command has none
  std::string files;                                    // the texts of its files, see pass_config()
  std::function<std::vector<std::string>()> variables;  // names of the environment's that it refers to
};

// Where this process was started by a user and several ranks are wanted: how. Nothing where it is itself a rank, or the
// only one, which may start again with another environment. Asks the stated hosts, and throws Error{peer} where one
// cannot take part (check_hosts()).
std::optional<LaunchPlan> plan_ranks(const ClusterOptions& cluster, const LaunchFlags& flags,
                                     const LaunchedConfig& config, const Situation& situation);

// What each rank of a command is started with. `config` is the whole resolved config; `options` are those beside it
// that all ranks must have alike, in the order of the command.
RankCommand rank_command(const std::string& name, const Node& config, const ClusterOptions& cluster,
                         const LaunchFlags& flags, const RankValues& options = {});

// Starts this same command line under mpirun, waits, and returns how it ended.
Outcome run_ranks(const LaunchPlan& plan, const SupervisionOptions& options);

// plan_ranks() and run_ranks(); where there was a plan it reports what went wrong and returns the exit code. Output
// that is held is a JSON document.
std::optional<int> supervise_ranks(const ClusterOptions& cluster, const LaunchFlags& flags,
                                   const LaunchedConfig& config, const Situation& situation,
                                   const SupervisionOptions& options);

}  // namespace trainctl
