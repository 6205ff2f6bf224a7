// Runs attempts: prepares, starts and watches mpirun until all its processes have ended, derives the outcome, and asks
// the policy for the next action.
#include "parallel/launch/supervisor/supervisor.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <utility>

#include "core/base/log.h"
#include "parallel/launch/plan.h"
#include "parallel/launch/supervisor/command.h"
#include "parallel/launch/supervisor/mpirun_watch.h"

namespace trainctl {
namespace {

// Returns the rank of a process id; empty if no rank has this id, or if ranks on several hosts have it.
std::optional<int> rank_of(int process, const std::vector<int>& processes) {
  const auto found = std::find(processes.begin(), processes.end(), process);
  if (found == processes.end() || std::find(found + 1, processes.end(), process) != processes.end()) return {};
  return static_cast<int>(found - processes.begin());
}

AttemptTraces traces_of(const MpirunWatch& watch, const Mpirun& mpirun, bool one_host, const std::string& status_file) {
  const RanksOutput& output = watch.output();
  AttemptTraces traces{.status = read_status(status_file),
                       .report = mpirun.report(output.messages() + output.last_output()),
                       .messages = output.messages(),
                       .held_errors = std::string(output.held_errors()),
                       .mpirun_code = watch.mpirun_code(),
                       .asked_to_stop = watch.asked_to_stop(),
                       .output_error = output.output_error(),
                       .step = read_step(status_file)};
  MpirunReport& report = traces.report;
  // The launcher may name a process that it has killed itself. The rank that ended first is known only if all ranks run
  // on one host.
  if (!report.rank && report.process) {
    report.rank = one_host ? watch.first_ended() : rank_of(*report.process, marked_processes(status_file));
  }
  return traces;
}

// Returns the outcome of an attempt that ended with mpirun. Shows MPI's messages from the start of the ranks, unless an
// error of trainctl explains the end.
Outcome judge(const AttemptTraces& traces, MpirunWatch& watch) {
  Outcome outcome = outcome_of(traces);
  const bool is_shortage =
      !traces.status && outcome.kind == OutcomeKind::resource_error && !outcome.end.message.empty();
  const bool explained =
      is_shortage || (traces.status && !traces.status->message.empty() && !traces.held_errors.empty());
  if (explained || (!traces.status && traces.mpirun_code != 0)) {
    log::debug("mpirun and the ranks said:\n" + traces.messages + traces.held_errors);
  }
  if (!explained) watch.show_held_errors();
  if (!is_shortage) outcome.output = watch.output().output();
  return outcome;
}

// Runs one attempt. When it returns, no rank and no temporary file is left on this host.
Outcome run_attempt(const LaunchPlan& plan, const std::vector<std::string>& command, const SupervisionOptions& options,
                    Supervision& supervision) {
  const std::unique_ptr<Mpirun> mpirun = mpirun_of(plan.mpi);
  const MpirunCommand prepared(plan, command, *mpirun, !options.holds_output);
  const std::string& status_file = prepared.status_file();
  // Rank 0 may have drawn a progress bar, which must be erased before this process prints a line.
  if (prepared.shows_bar()) log::set_terminal_hooks([] { std::fputs("\r\x1b[K", stderr); }, {});
  MpirunWatch watch(supervision, start_process(prepared.words(), prepared.environment()), status_file, plan, *mpirun,
                    options);
  watch.wait();
  Outcome outcome;
  if (watch.verdict()) {
    watch.show_held_errors();
    outcome = *watch.verdict();
    outcome.step = read_step(status_file);
  } else {
    outcome = judge(traces_of(watch, *mpirun, plan.one_host, status_file), watch);
  }
  if (outcome.end.exit_code != 0) {
    outcome.last_lines = last_lines(read_log_path(status_file), outcome.rank, watch.output().last_output());
  }
  return outcome;
}

}  // namespace

Outcome run_supervised(const LaunchPlan& plan, const std::vector<std::string>& command,
                       const SupervisionOptions& options, const Policy& policy) {
  Supervision supervision;  // from now on all requests are received
  std::vector<Outcome> outcomes;
  do {
    const Outcome& outcome = outcomes.emplace_back(run_attempt(plan, command, options, supervision));
    log::debug("the ranks have ended: " + to_string(outcome));
    if (!outcome.last_lines.empty()) log::debug("the last lines of their log:\n" + outcome.last_lines);
  } while (policy(outcomes, supervision.requests) == NextAction::again);
  return std::move(outcomes.back());
}

}  // namespace trainctl
