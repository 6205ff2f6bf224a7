// The supervisor: `trainctl run` outside MPI, which starts mpirun and waits for its end, in one or more attempts.
//
// What the files here do: signals.h receives requests to stop, and stopping.h says what they do when. An attempt is a
// command (command.h) that is watched (mpirun_watch.h) and ends with an outcome (outcome.h). policy.h says whether
// another attempt follows.
#pragma once

#include <string>
#include <vector>

#include "parallel/launch/supervisor/policy.h"

namespace trainctl {

struct LaunchPlan;

// How a supervisor treats its ranks.
struct SupervisionOptions {
  // A request to stop reaches the ranks; else it ends them at once, since they keep nothing.
  bool stops_in_order = true;
  // The ranks' standard output is collected for the caller instead of being passed on.
  bool holds_output = false;
};

// Runs `command` (a program and its arguments) as the plan's ranks; call it while this process has no other threads.
// Standard input is closed to the ranks; their output passes through as it comes, or is held. The first SIGINT,
// SIGTERM, SIGHUP or SIGUSR1 reaches all ranks as SIGUSR1 where they stop in order, within a limit of time
// (stopping.h); a SIGINT after that, or else the first signal, ends everything at once. Nothing that follows waits for
// mpirun without a limit. When this returns, no rank is left on this host and no temporary file; where this process is
// killed, mpirun and the ranks end too.
//
// Returns the outcome of the last attempt; what went wrong is the caller's to report. Throws Error{config} where there
// is no mpirun, Error{resource} where it cannot be started.
Outcome run_supervised(const LaunchPlan& plan, const std::vector<std::string>& command,
                       const SupervisionOptions& options = {}, const Policy& policy = end_always);

}  // namespace trainctl
