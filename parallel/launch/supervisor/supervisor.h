// The supervisor: `trainctl run` outside MPI, which starts mpirun and waits for its end, in one or more attempts.
//
// The files of this folder: signals.h receives requests to stop, and stopping.h decides their effects. An attempt is a
// command (command.h), which is watched (mpirun_watch.h) and ends with an outcome (outcome.h). policy.h decides whether
// another attempt follows.
#pragma once

#include <string>
#include <vector>

#include "parallel/launch/supervisor/policy.h"

namespace trainctl {

struct LaunchPlan;

// How a supervisor treats its ranks.
struct SupervisionOptions {
  // True: a request to stop is relayed to the ranks. False: it ends them at once, since they have nothing to save.
  bool stops_in_order = true;
  // The ranks' standard output is collected for the caller instead of being forwarded.
  bool holds_output = false;
};

// Runs `command` (a program and its arguments) as the plan's ranks; call it while this process has no other threads.
// Standard input is closed to the ranks; their output is forwarded as it comes, or held. If the ranks stop in order,
// the first SIGINT, SIGTERM, SIGHUP or SIGUSR1 is relayed to all ranks as SIGUSR1, and they have a limited time to stop
// (stopping.h); a SIGINT after that ends everything at once. Otherwise the first signal ends everything at once. After
// that no wait for mpirun is unlimited. When this returns, no rank and no temporary file is left on this host; if this
// process is killed, mpirun and the ranks end, too.
//
// Returns the outcome of the last attempt; the caller reports errors. Throws Error{config} if mpirun is not installed,
// Error{resource} if it cannot be started.
Outcome run_supervised(const LaunchPlan& plan, const std::vector<std::string>& command,
                       const SupervisionOptions& options = {}, const Policy& policy = end_always);

}  // namespace trainctl
