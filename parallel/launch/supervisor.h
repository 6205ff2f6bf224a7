// The supervisor: `trainctl run` outside MPI, which starts mpirun and waits for its end.
//
// How cmd uses this folder:
//
//   const Variables variables = Variables::of_process();
//   const Situation situation = find_situation(variables);
//   if (situation.started_by == StartedBy::user) {
//     const LaunchPlan plan = plan_launch(launch_request(options, flags));
//     for (warning : plan.warnings) log::warning(warning);
//     if (!plan.mpirun.empty()) return supervise(plan, {own_path(), argv[1], ...});
//   }
//   const int threads = prepare_rank(situation, variables);  // StopAtOnce lives since the start of main
//   MPI, then: require_world_size(situation, size); if (rank == 0 && situation.supervised) mark_ready(status_file);
//   StopRequest stop; train, polling stop.pending();
//   at the end, and before an abort: write_status(status_file, {code, message}).
#pragma once

#include <string>
#include <vector>

#include "parallel/launch/plan.h"
#include "parallel/launch/status.h"
#include "parallel/launch/supervision.h"

namespace trainctl {

// The path of the running program, for its ranks.
std::string own_path();

struct Supervised {
  RankStatus end;
  std::string output;  // of the ranks, where it is held
};

// Runs `command` (a program and its arguments) as the plan's ranks; call it while this process has no other threads.
// Standard input is closed to the ranks; their output passes through as it comes, or is held. The first SIGINT,
// SIGTERM, SIGHUP or SIGUSR1 reaches all ranks as SIGUSR1 where they stop in order, within a limit of time
// (stopping.h); a SIGINT after that, or else the first signal, ends everything at once. Nothing that follows waits for
// mpirun without a limit. When this returns, no rank is left on this host and no temporary file; where this process is
// killed, mpirun and the ranks end too.
//
// Returns how the run ended; what went wrong is the caller's to report. Throws Error{config} where there is no mpirun,
// Error{resource} where it cannot be started.
Supervised run_supervised(const LaunchPlan& plan, const std::vector<std::string>& command,
                          const SupervisionOptions& options = {});

// The same; reports what went wrong on standard error (log::error), and returns the exit code.
int supervise(const LaunchPlan& plan, const std::vector<std::string>& command);

}  // namespace trainctl
