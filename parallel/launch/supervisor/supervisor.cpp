// Runs attempts: prepares, starts and watches mpirun until all its processes have ended, derives the outcome, and asks
// the policy for the next action.
#include "parallel/launch/supervisor/supervisor.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <utility>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/log.h"
#include "core/base/output.h"
#include "core/base/table.h"
#include "parallel/launch/host/resources.h"
#include "parallel/launch/plan.h"
#include "parallel/launch/ranks/status.h"
#include "parallel/launch/supervisor/command.h"
#include "parallel/launch/supervisor/copies.h"
#include "parallel/launch/supervisor/mpirun_watch.h"
#include "parallel/launch/watch/rank_view.h"

namespace trainctl {
namespace {

// How long the supervisor may be busy between two checks of its signals while no ranks run.
constexpr std::chrono::seconds longest_work(2);

// Returns the rank of a process id; empty if no rank has this id, or if ranks on several hosts have it.
std::optional<int> rank_of(int process, const std::vector<int>& processes) {
  const auto found = std::find(processes.begin(), processes.end(), process);
  if (found == processes.end() || std::find(found + 1, processes.end(), process) != processes.end()) return {};
  return static_cast<int>(found - processes.begin());
}

std::optional<std::int64_t> last_step(const std::string& status_file, const std::string& flight_folder) {
  return last_done_step(read_step(status_file), flight_folder);
}

AttemptTraces traces_of(const MpirunWatch& watch, const Mpirun& mpirun, bool one_host, const MpirunCommand& command,
                        std::int64_t memory_kills_before) {
  const std::string& status_file = command.status_file();
  const RanksOutput& output = watch.output();
  AttemptTraces traces{.status = read_status(status_file),
                       .report = mpirun.report(output.messages() + output.last_output()),
                       .messages = output.messages(),
                       .held_errors = std::string(output.held_errors()),
                       .mpirun_code = watch.mpirun_code(),
                       .asked_to_stop = watch.asked_to_stop(),
                       .output_error = output.output_error(),
                       .step = last_step(status_file, command.flight_folder()),
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
    log::debug("mpirun and the ranks have printed:\n" + traces.messages + traces.held_errors);
  }
  if (!explained) watch.show_held_errors();
  if (!is_shortage) outcome.output = watch.output().output();
  return outcome;
}

// The outcome of an attempt, and the plan for which it was stopped, if the plan has changed.
struct AttemptEnd {
  Outcome outcome;
  std::optional<LaunchPlan> changed_plan;
  bool is_requested = false;  // whether the user has requested that plan
};

// Why an attempt is started.
struct AttemptCause {
  std::optional<Restart> restart;      // empty for the first attempt
  std::vector<RefusedResize> refused;  // the requests that ranks of earlier attempts could not meet, if not recorded
};

// Runs one attempt. When it returns, no rank and no temporary file is left on this host.
AttemptEnd run_attempt(const LaunchPlan& plan, const std::vector<std::string>& command, const AttemptCause& cause,
                       const SupervisionOptions& options, const Restarts& restarts, Supervision& supervision) {
  const std::int64_t memory_kills_before = memory_kills();
  const std::unique_ptr<Mpirun> mpirun = mpirun_of(plan.mpi);
  const bool watches = HostWatch::can_watch(plan, options.watch);
  const MpirunCommand prepared(plan, command, cause.restart, *mpirun,
                               {supervision.launch, !options.holds_output, watches});
  const std::string& status_file = prepared.status_file();
  for (const RefusedResize& refused : cause.refused) write_refused_resize(status_file, refused);
  // Rank 0 may have drawn a progress bar, which must be erased before this process prints a line.
  if (prepared.shows_bar()) log::set_terminal_hooks([] { std::fputs("\r\x1b[K", stderr); }, {});
  HostWatch hosts(plan, options.watch, prepared.flight_folder());
  supervision.signals.before_suspension([&hosts] { hosts.pause(); });
  MpirunWatch watch(supervision, start_process(prepared.words(), prepared.environment()), prepared, plan, *mpirun,
                    options, restarts, hosts);
  watch.wait();
  supervision.signals.before_suspension({});
  if (!supervision.log.empty()) hosts.collect(std::filesystem::path(supervision.log).parent_path().string());
  Outcome outcome;
  if (watch.verdict()) {
    watch.show_held_errors();
    outcome = *watch.verdict();
    if (!outcome.step) outcome.step = last_step(status_file, prepared.flight_folder());
  } else {
    outcome = judge(traces_of(watch, *mpirun, plan.one_host, prepared, memory_kills_before), watch);
  }
  if (outcome.end.exit_code != 0) {
    outcome.last_lines = last_lines(read_log_path(status_file), outcome.rank, watch.output().last_output());
  }
  return {std::move(outcome), watch.changed_plan(), watch.is_requested()};
}

// Removes the copies of the run's state in shared memory, which no other attempt needs.
struct CopiesRemover {
  Supervision& supervision;
  const SupervisionOptions& options;
  ~CopiesRemover() {
    supervision.guard.expect_within(std::chrono::seconds(10));
    remove_copies_here(supervision.log, supervision.launch);
    if (options.keeps_copies && supervision.copies_left) {
      supervision.hosts_of_copies.remove_copies(supervision.log, supervision.launch);
    }
  }
};

// Waits before the next attempt. Returns false if a request to stop has arrived.
bool wait_to_restart(Supervision& supervision, std::chrono::milliseconds delay) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + delay;
  for (;;) {
    while (const int signal = supervision.guard.next()) {
      if (signal != SIGCHLD) note_request(supervision.requests, signal, Clock::now());
    }
    if (supervision.requests.asked) return false;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    if (left.count() <= 0) return true;
    supervision.guard.expect_within(left + longest_work);
    pollfd source{supervision.guard.descriptor(), POLLIN, 0};
    poll(&source, 1, static_cast<int>(left.count()));
  }
}

// Describes the end of an attempt to the ranks of the next attempt.
Restart restart_after(const Outcome& outcome, bool resized, int attempts, const std::string& log) {
  return {.event = {.attempt = attempts + 1,
                    .cause = std::string(resized ? cause_resized : name_of(outcome.kind)),
                    .rank = outcome.rank,
                    .host = outcome.host,
                    .signal = outcome.signal,
                    .step = outcome.step,
                    .detected = wall_seconds()},
          .run_directory = log.empty() ? "" : std::filesystem::path(log).parent_path().string()};
}

// Tells the user with how many ranks, when and from which state the run starts again.
void announce_restart(const LaunchPlan& plan, std::size_t restarts, std::chrono::milliseconds delay,
                      const Supervision& supervision, const SupervisionOptions& options) {
  const double seconds = std::chrono::duration<double>(delay).count();
  std::string from;
  if (options.next_state && !supervision.log.empty()) {
    const std::string directory = std::filesystem::path(supervision.log).parent_path().string();
    from = options.next_state({directory, supervision.launch, plan.one_host});
  }
  log::warning(format("the run starts again on {}{} (restart {}){}", counted(plan.ranks, "rank"),
                      seconds > 0 ? format(" in {:g} s", seconds) : "", restarts,
                      from.empty() ? newest_checkpoint(supervision.log) : " from " + from));
}

// Whether the ranks refuse their plan: they have ended before their first step, with an error of the config or a lack
// of resources.
bool refuses_plan(const Outcome& outcome) {
  const bool refuses = outcome.kind == OutcomeKind::config_error || outcome.kind == OutcomeKind::resource_error;
  return refuses && !outcome.step;
}

// The error of an attempt. Ranks that have printed theirs leave no message.
std::string message_of(const Outcome& outcome) {
  return outcome.end.message.empty() ? to_string(outcome) : outcome.end.message;
}

// Waits until the ranks' output is written. A request to stop ends the wait, and the rest is lost.
void finish_output(Supervision& supervision, Outcome& outcome) {
  if (supervision.requests.again) return;
  std::string& text = supervision.unwritten_output;
  while (!text.empty()) {
    const int error = write_ready(STDOUT_FILENO, text);
    if (error != 0) return note_output_error(outcome, error);
    if (text.empty()) return;
    supervision.guard.expect_within(std::chrono::hours(24 * 365));
    pollfd sources[] = {{supervision.guard.descriptor(), POLLIN, 0}, {STDOUT_FILENO, POLLOUT, 0}};
    poll(sources, 2, -1);
    while (const int signal = supervision.guard.next()) {
      if (signal == SIGCHLD) continue;
      if (outcome.end.exit_code != 0) return;
      outcome.kind = OutcomeKind::interrupted;
      outcome.end = {exit_code(ErrorKind::interrupted), "stopped before all output was read"};
      return;
    }
  }
}

// Runs attempts until the policy ends the run; returns the last outcome.
Outcome run_attempts(LaunchPlan plan, const std::vector<std::string>& command, const SupervisionOptions& options,
                     const Restarts& restarts, Supervision& supervision) {
  std::vector<Outcome> failures;  // of attempts whose ranks did not stop for another plan
  AttemptCause cause;             // why the present attempt was started
  LaunchPlan plan_before = plan;  // the plan before the last resize
  bool is_untried = false;        // whether the plan is that of a resize, and no attempt has trained with it yet
  bool is_requested = false;      // whether the user has requested that plan
  for (int attempts = 1;; ++attempts) {
    supervision.hosts_of_copies.add(plan);
    const bool copies_were_left = std::exchange(supervision.copies_left, true);  // an exception may end the attempt
    AttemptEnd end = run_attempt(plan, command, cause, options, restarts, supervision);
    supervision.guard.expect_within(longest_work);
    Outcome& outcome = end.outcome;
    log::debug("the ranks have ended: " + to_string(outcome));
    const bool ended = outcome.kind == OutcomeKind::completed || outcome.kind == OutcomeKind::stopped;
    supervision.copies_left = copies_were_left || !ended || end.changed_plan;
    if (!outcome.last_lines.empty()) log::debug("the last lines of their log:\n" + outcome.last_lines);
    const bool resizes = end.changed_plan && outcome.kind == OutcomeKind::stopped && !supervision.requests.asked;
    const bool goes_back = is_untried && refuses_plan(outcome);
    is_untried = !goes_back && (end.changed_plan || (is_untried && !outcome.step));
    cause.restart = restart_after(outcome, resizes, attempts, supervision.log);
    if (outcome.step) cause.refused.clear();  // rank 0 has recorded them
    if (goes_back) {
      if (is_requested) cause.refused.push_back({plan.wanted_ranks, message_of(outcome)});
      log::warning(format("{}\nthe run goes on with {}", message_of(outcome), counted(plan_before.ranks, "rank")));
      plan = plan_before;
      continue;
    }
    if (end.changed_plan) {
      plan_before = std::exchange(plan, std::move(*end.changed_plan));
      is_requested = end.is_requested;
    }
    NextAction next;
    if (!resizes) {
      failures.push_back(outcome);
      next = restarts.policy(failures, supervision.requests);
      if (!next.again) {
        if (!next.why_not.empty()) outcome.end.message = message_of(outcome) + "\n" + next.why_not;
        return std::move(outcome);
      }
      log::warning(message_of(outcome));  // the cause comes before its effects
    }
    try {
      if (restarts.next_plan) plan = restarts.next_plan(plan, outcome);
    } catch (const Error& error) {
      outcome.end = {exit_code(error.kind()), format("the run cannot start again: {}", error.what())};
      return std::move(outcome);
    }
    if (resizes) continue;
    announce_restart(plan, failures.size(), next.delay, supervision, options);
    if (!wait_to_restart(supervision, next.delay)) {
      return {.kind = OutcomeKind::stopped,
              .end = {exit_code(ErrorKind::stopped),
                      "stopped before the run started again" + newest_checkpoint(supervision.log)}};
    }
  }
}

}  // namespace

Outcome run_supervised(const LaunchPlan& plan, const std::vector<std::string>& command,
                       const SupervisionOptions& options, const Restarts& restarts) {
  Supervision supervision;  // from now on all requests are received
  if (!options.launch.empty()) supervision.launch = options.launch;
  const CopiesRemover remover{supervision, options};
  Outcome outcome = run_attempts(plan, command, options, restarts, supervision);
  supervision.directory.release();  // another run may use it while the reader of the output takes its time
  finish_output(supervision, outcome);
  return outcome;
}

}  // namespace trainctl
