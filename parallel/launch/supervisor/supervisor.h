// The supervisor: `trainctl run` outside MPI. It starts mpirun and waits for its end, in one or more attempts.
//
// The files of this folder: signals.h receives requests to stop, and stopping.h decides their effects. An attempt runs
// a command (command.h), watches it (mpirun_watch.h) and its ranks (../watch/host_watch.h), and ends with an outcome
// (outcome.h). policy.h decides whether another attempt follows.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "parallel/launch/plan.h"
#include "parallel/launch/supervisor/plan_change.h"
#include "parallel/launch/supervisor/policy.h"
#include "parallel/launch/watch/host_watch.h"

namespace trainctl {

// A run whose ranks are about to start again.
struct RestartingRun {
  std::string directory;  // the run's directory
  std::string launch;     // the name of the supervisor, see Generation
  bool one_host = true;   // whether all ranks will run on this host
};

// How a supervisor treats its ranks.
struct SupervisionOptions {
  // True: a request to stop is relayed to the ranks. False: a request ends the ranks immediately, since they have no
  // state to save.
  bool stops_in_order = true;
  // Whether the ranks' standard output is collected for the caller instead of being forwarded.
  bool holds_output = false;
  HostWatchOptions watch = {};  // whether agents watch the ranks, and when ranks hang
  // Whether the ranks keep copies of the run's state in shared memory, which must be removed if they cannot do so.
  bool keeps_copies = false;
  std::string launch = {};  // the supervisor's name (see Generation); "": a new name
  // Names the state from which the run goes on, such as "checkpoint runs/mnist/checkpoints/step-00000060"; "" if it is
  // unknown. Called before the ranks start again after a failure. Null: the newest checkpoint is named.
  std::function<std::string(const RestartingRun&)> next_state = nullptr;
};

// Whether and how the ranks are started again after an attempt.
struct Restarts {
  Policy policy = end_always;
  // Returns the plan of the next attempt. `before`: the plan of the attempt that ended with `outcome`, or to which the
  // run is resized. May throw Error, which ends the run. Null: always the same plan.
  std::function<LaunchPlan(const LaunchPlan& before, const Outcome& outcome)> next_plan;
  // Returns the plan with which the run shall go on instead of the plan `now`, if it shall change. Called about twice a
  // second with the run's directory while the ranks train, and must not wait. The ranks stop in order and start again
  // with the new plan, which is no restart for `policy`. Null: the plan never changes.
  std::function<PlanChange(const LaunchPlan& now, const std::string& run_directory)> changed_plan;
};

// Runs `command` (a program and its arguments) as the plan's ranks; must be called while this process has no other
// threads. Standard input is closed to the ranks; their output is forwarded immediately, or held. If the ranks stop in
// order, the first SIGINT, SIGTERM, SIGHUP or SIGUSR1 is relayed to all ranks as SIGUSR1. The ranks then have a limited
// time to stop (stopping.h); a second SIGINT ends mpirun and all ranks immediately. Otherwise the first signal ends
// them immediately. After a signal every wait for mpirun is limited. The ranks of an attempt after the first know why
// it was started (restart.h). When this function returns, no rank and no temporary file is left on this host; if this
// process is killed, mpirun and the ranks end, too.
//
// Returns the outcome of the last attempt; the caller reports errors. Throws Error{config} if mpirun is not installed,
// Error{resource} if it cannot be started.
Outcome run_supervised(const LaunchPlan& plan, const std::vector<std::string>& command,
                       const SupervisionOptions& options = {}, const Restarts& restarts = {});

}  // namespace trainctl
