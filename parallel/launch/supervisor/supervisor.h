// The supervisor: `trainctl run` outside MPI. It starts mpirun and waits for its end, in one or more attempts.
//
// The files of this folder: signals.h receives requests to stop, and stopping.h decides their effects. An attempt runs
// a command (command.h), watches it (mpirun_watch.h), and ends with an outcome (outcome.h). policy.h decides whether
// another attempt follows.
#pragma once

#include <string>
#include <vector>

#include "parallel/launch/supervisor/policy.h"

namespace trainctl {

struct LaunchPlan;

// How a supervisor treats its ranks.
struct SupervisionOptions {
  // True: a request to stop is relayed to the ranks. False: a request ends the ranks immediately, since they have no
  // state to save.
  bool stops_in_order = true;
  // Whether the ranks' standard output is collected for the caller instead of being forwarded.
  bool holds_output = false;
};

// Runs `command` (a program and its arguments) as the plan's ranks; must be called while this process has no other
// threads. Standard input is closed to the ranks; their output is forwarded immediately, or held. If the ranks stop in
// order, the first SIGINT, SIGTERM, SIGHUP or SIGUSR1 is relayed to all ranks as SIGUSR1. The ranks then have a limited
// time to stop (stopping.h); a second SIGINT ends mpirun and all ranks immediately. Otherwise the first signal ends
// them immediately. After a signal every wait for mpirun is limited. When this function returns, no rank and no
// temporary file is left on this host; if this process is killed, mpirun and the ranks end, too.
//
// Returns the outcome of the last attempt; the caller reports errors. Throws Error{config} if mpirun is not installed,
// Error{resource} if it cannot be started.
Outcome run_supervised(const LaunchPlan& plan, const std::vector<std::string>& command,
                       const SupervisionOptions& options = {}, const Policy& policy = end_always);

}  // namespace trainctl
