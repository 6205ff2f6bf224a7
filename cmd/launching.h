// From a command to its ranks: what `run`, `eval` and `bench` share.
#pragma once

#include <optional>
#include <string>

#include "cmd/rank.h"
#include "cmd/run_spec.h"
#include "cmd/subcommand.h"
#include "parallel/launch/plan.h"
#include "parallel/launch/supervisor.h"

namespace CLI {
class App;
}

namespace trainctl {

// How the ranks of a command are started; empty: as the config says.
struct LaunchFlags {
  std::string ranks;
  std::string hosts;
  std::string device;
};

// Declares --ranks, --hosts and --device.
void add_launch_options(CLI::App& app, LaunchFlags& flags);

// The config with what the command line sets, --device among it, which joins the other settings.
RunSpec load_run_spec(CommonOptions& common, const LaunchFlags& flags);

// What is asked for, with the GPUs of this host. Throws Error{resource} where the ranks, all on this host, want GPUs
// and there are none.
LaunchRequest launch_request(const ClusterOptions& cluster, const LaunchFlags& flags);

// Where this process was started by a user and several ranks are wanted: how. Nothing where it is itself a rank, or the
// only one, which may start again with other surroundings.
std::optional<LaunchPlan> plan_ranks(const ClusterOptions& cluster, const CommonOptions& common,
                                     const LaunchFlags& flags, const Situation& situation);

// What each rank of a command is started with. `options` are those beside the config that all ranks must have alike,
// in the order of the command.
RankCommand rank_command(const std::string& name, const RunSpec& spec, const LaunchFlags& flags,
                         const RankFacts& options = {});

// Starts this same command line under mpirun, waits, and says how it ended.
Supervised run_ranks(const LaunchPlan& plan, const SupervisionOptions& options);

// Both; reports what went wrong, and returns the exit code. `trains`: the ranks have something to save when they are
// asked to stop.
std::optional<int> supervise_ranks(const ClusterOptions& cluster, const CommonOptions& common, const LaunchFlags& flags,
                                   const Situation& situation, bool trains);

}  // namespace trainctl
