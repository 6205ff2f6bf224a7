// Runs attempts: prepares, starts and watches mpirun until all its processes have ended, derives the outcome, and asks
// the policy for the next action.
#include "parallel/launch/supervisor/supervisor.h"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <utility>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/log.h"
#include "parallel/launch/host/resources.h"
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

AttemptTraces traces_of(const MpirunWatch& watch, const Mpirun& mpirun, bool one_host, const std::string& status_file,
                        std::int64_t memory_kills_before) {
  const RanksOutput& output = watch.output();
  AttemptTraces traces{.status = read_status(status_file),
                       .report = mpirun.report(output.messages() + output.last_output()),
                       .messages = output.messages(),
                       .held_errors = std::string(output.held_errors()),
                       .mpirun_code = watch.mpirun_code(),
                       .asked_to_stop = watch.asked_to_stop(),
                       .output_error = output.output_error(),
                       .step = read_step(status_file),
                       .memory_ran_out = one_host && memory_kills() > memory_kills_before};
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

// The outcome of an attempt, and the plan for which it was stopped, if the plan has changed.
struct AttemptEnd {
  Outcome outcome;
  std::optional<LaunchPlan> changed_plan;
};

// Runs one attempt. When it returns, no rank and no temporary file is left on this host.
AttemptEnd run_attempt(const LaunchPlan& plan, const std::vector<std::string>& command,
                       const std::optional<Restart>& restart, const SupervisionOptions& options,
                       const Restarts& restarts, Supervision& supervision) {
  const std::int64_t memory_kills_before = memory_kills();
  const std::unique_ptr<Mpirun> mpirun = mpirun_of(plan.mpi);
  const MpirunCommand prepared(plan, command, restart, *mpirun, !options.holds_output);
  const std::string& status_file = prepared.status_file();
  // Rank 0 may have drawn a progress bar, which must be erased before this process prints a line.
  if (prepared.shows_bar()) log::set_terminal_hooks([] { std::fputs("\r\x1b[K", stderr); }, {});
  MpirunWatch watch(supervision, start_process(prepared.words(), prepared.environment()), status_file, plan, *mpirun,
                    options, restarts);
  watch.wait();
  Outcome outcome;
  if (watch.verdict()) {
    watch.show_held_errors();
    outcome = *watch.verdict();
    outcome.step = read_step(status_file);
  } else {
    outcome = judge(traces_of(watch, *mpirun, plan.one_host, status_file, memory_kills_before), watch);
  }
  if (outcome.end.exit_code != 0) {
    outcome.last_lines = last_lines(read_log_path(status_file), outcome.rank, watch.output().last_output());
  }
  return {std::move(outcome), watch.changed_plan()};
}

// Waits before the next attempt. Returns false if a request to stop has arrived.
bool wait_to_restart(Supervision& supervision, std::chrono::milliseconds delay) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + delay;
  for (;;) {
    while (const int signal = supervision.signals.next()) {
      if (signal != SIGCHLD) note_request(supervision.requests, signal, Clock::now());
    }
    if (supervision.requests.asked) return false;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    if (left <= 0) return true;
    pollfd source{supervision.signals.descriptor(), POLLIN, 0};
    poll(&source, 1, static_cast<int>(left));
  }
}

// Describes the end of an attempt to the ranks of the next attempt.
Restart restart_after(const Outcome& outcome, bool resized, int attempts, const std::string& log) {
  return {.attempt = attempts + 1,
          .cause = resized ? "resized" : std::string(name_of(outcome.kind)),
          .rank = outcome.rank,
          .host = outcome.host,
          .signal = outcome.signal,
          .step = outcome.step,
          .run_directory = log.empty() ? "" : std::filesystem::path(log).parent_path().string()};
}

void announce_restart(const LaunchPlan& plan, std::size_t restarts, std::chrono::milliseconds delay,
                      const std::string& log) {
  const double seconds = std::chrono::duration<double>(delay).count();
  log::warning(format("the run starts again on {}{} (restart {}){}",
                      plan.ranks == 1 ? "1 rank" : format("{} ranks", plan.ranks),
                      seconds > 0 ? format(" in {:g} s", seconds) : "", restarts, newest_checkpoint(log)));
}

}  // namespace

Outcome run_supervised(LaunchPlan plan, const std::vector<std::string>& command, const SupervisionOptions& options,
                       const Restarts& restarts) {
  Supervision supervision;        // from now on all requests are received
  std::vector<Outcome> failures;  // the outcomes of attempts that were not stopped to change the plan
  std::optional<Restart> restart;
  for (int attempts = 1;; ++attempts) {
    auto [outcome, changed_plan] = run_attempt(plan, command, restart, options, restarts, supervision);
    log::debug("the ranks have ended: " + to_string(outcome));
    if (!outcome.last_lines.empty()) log::debug("the last lines of their log:\n" + outcome.last_lines);
    const bool resized = changed_plan && outcome.kind == OutcomeKind::stopped && !supervision.requests.asked;
    restart = restart_after(outcome, resized, attempts, supervision.log);
    if (resized) {
      plan = std::move(*changed_plan);
      continue;
    }
    failures.push_back(std::move(outcome));
    Outcome& failure = failures.back();
    const NextAction next = restarts.policy(failures, supervision.requests);
    if (!next.again) {
      if (!next.why_not.empty()) failure.end.message += "\n" + next.why_not;
      return std::move(failure);
    }
    // The cause comes first; ranks that have printed it themselves leave no message.
    log::warning(failure.end.message.empty() ? to_string(failure) : failure.end.message);
    try {
      if (restarts.next_plan) plan = restarts.next_plan(plan, failure);
    } catch (const Error& error) {
      failure.end.message = format("the run cannot start again: {}", error.what());
      return std::move(failure);
    }
    announce_restart(plan, failures.size(), next.delay, supervision.log);
    if (!wait_to_restart(supervision, next.delay)) {
      return {.kind = OutcomeKind::stopped,
              .end = {exit_code(ErrorKind::stopped),
                      "stopped before the run started again" + newest_checkpoint(supervision.log)}};
    }
  }
}

}  // namespace trainctl
