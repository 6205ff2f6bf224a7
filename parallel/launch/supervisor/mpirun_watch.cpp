// Waits for mpirun and reacts to signals, output and deadlines.
#include "parallel/launch/supervisor/mpirun_watch.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/log.h"
#include "core/base/table.h"
#include "parallel/launch/plan.h"
#include "parallel/launch/ranks/report.h"
#include "parallel/launch/ranks/status.h"
#include "parallel/launch/supervisor/command.h"
#include "parallel/launch/supervisor/supervisor.h"
#include "parallel/launch/watch/host_watch.h"

namespace trainctl {
namespace {

constexpr std::chrono::seconds longest_turn(2);  // of the loop in wait()
constexpr std::chrono::seconds longest_end(20);  // to kill processes that are left, and to collect flight records

}  // namespace

MpirunWatch::MpirunWatch(Supervision& supervision, const ChildProcess& child, const MpirunCommand& command,
                         const LaunchPlan& plan, Mpirun& mpirun, const SupervisionOptions& options,
                         const Restarts& restarts, HostWatch& hosts)
    : supervision_(supervision),
      restarts_(restarts),
      plan_(plan),
      hosts_watch_(hosts),
      requests_(supervision.requests),
      mpirun_(mpirun),
      child_(child),
      output_(child_, mpirun, command.status_file(), supervision.unwritten_output, options.holds_output,
              plan.first_rank_here),
      status_file_(command.status_file()),
      first_rank_here_(plan.first_rank_here),
      one_host_(plan.one_host),
      stops_in_order_(options.stops_in_order),
      start_timeout_(plan.start_timeout),
      timeout_(plan.timeout),
      hosts_answer_(plan.hosts_answer),
      hosts_(plan.hosts) {
  asked_.started = start_;
  asked_.sees_ranks = plan.first_rank_here;
  asked_.patience = plan.timeout;
  supervision_.guard.watch(GuardedRanks{child_.pid, status_file_, hosts.folder(), command.folders(), supervision.launch,
                                        stops_in_order_, asked_});
}

MpirunWatch::~MpirunWatch() {
  kill_children(hosts_watch_.processes());
  supervision_.guard.watch({});
  for (int pipe : {child_.output, child_.errors, child_.messages}) close(pipe);
  for (int rank : ranks_) close(rank);
}

void MpirunWatch::wait() {
  StopGuard& guard = supervision_.guard;
  while (!ended_ && !verdict_) {
    guard.expect_within(longest_turn);
    watch_ranks();
    keep_directory();
    std::vector<pollfd> sources = {{guard.descriptor(), POLLIN, 0}};
    for (const pollfd& each : output_.sources()) sources.push_back(each);
    for (int rank : ranks_) sources.push_back({rank, POLLIN, 0});
    hosts_watch_.add_sources(sources);
    const bool polls_fast = (asked_to_stop() && !asked_.relayed) || (one_host_ && processes_.empty());
    poll(sources.data(), sources.size(), polls_fast ? 20 : 500);
    check_ranks();
    while (const int signal = guard.next()) on_signal(signal);
    output_.read();
    if (ended_) break;
    check_hosts();
    decide();
    if (!verdict_ && mpirun_lingers()) {
      code_ = 1;
      break;
    }
  }
  guard.expect_within(longest_end);
  kill_children(hosts_watch_.processes());  // kills processes that mpirun has left
  output_.read_rest();
  keep_directory();
  join_log();
}

// Opens the processes of all ranks once they are known, to be woken by the end of one. Kernels before 5.3 do not
// support this.
void MpirunWatch::watch_ranks() {
  if (!one_host_ || !processes_.empty() || !is_ready(status_file_)) return;
  processes_ = marked_processes(status_file_);
  for (const int process : processes_) ranks_.push_back(static_cast<int>(syscall(SYS_pidfd_open, process, 0)));
}

// Finds the rank that ended first. When a rank ends, its launcher immediately ends the other ranks: if several ranks
// have ended since the last check, the first one is unknown. Ranks are checked again in reverse order, since a rank may
// end after it was checked and before the next ranks are.
void MpirunWatch::check_ranks() {
  const auto may_have_ended = [](int descriptor) {  // true for a process that could not be opened
    pollfd process{descriptor, POLLIN, 0};
    return descriptor < 0 || poll(&process, 1, 0) > 0;
  };
  if (saw_end_ || std::none_of(ranks_.begin(), ranks_.end(), may_have_ended)) return;
  std::set<int> ended;
  const auto check = [&](int rank) {
    if (has_ended(processes_[static_cast<std::size_t>(rank)])) ended.insert(rank);
  };
  const int count = static_cast<int>(processes_.size());
  for (int rank = 0; rank < count; ++rank) check(rank);
  if (ended.empty()) return;
  for (int rank = count - 1; rank >= 0; --rank) check(rank);
  if (ended.size() == 1) first_ended_ = *ended.begin();
  saw_end_ = true;
  for (int& rank : ranks_) close(std::exchange(rank, -1));
}

// Ends the ranks if they hang: not before they have started, and not while they stop or mpirun is suspended, which has
// deadlines of its own.
void MpirunWatch::check_hosts() {
  if (!is_ready(status_file_)) return;
  hosts_watch_.start();
  verdict_ = hosts_watch_.check(!asked_to_stop() && !suspended_since_ && !run_ended_at_);
  if (verdict_) verdict_->end.message += "\nthe ranks were ended" + newest_checkpoint(read_log_path(status_file_));
}

void MpirunWatch::on_signal(int number) {
  if (number == SIGCHLD) {
    reap();
    return;
  }
  note_request(requests_, number, std::chrono::steady_clock::now());
  if (!stops_in_order_ || is_other_fatal_signal(number)) requests_.at_once = true;
}

// Ends the ranks with a verdict if necessary.
void MpirunWatch::decide() {
  check_for_change();
  stop();
  watch_mpirun();
  if (!verdict_ && start_timed_out()) {
    const Error error(ErrorKind::peer, describe_start_timeout(), start_remedy());
    end_ranks(OutcomeKind::start_overdue, error.kind(), error.what());
  }
}

// Sets the verdict; the ranks are killed when wait() returns.
void MpirunWatch::end_ranks(OutcomeKind kind, ErrorKind error, std::string message) {
  verdict_ = Outcome{.kind = kind, .end = {exit_code(error), std::move(message)}};
}

// Asks the ranks to stop if the run shall go on with another plan. Ranks that cannot save their state would lose it.
void MpirunWatch::check_for_change() {
  constexpr std::chrono::milliseconds every(500);
  const auto now = std::chrono::steady_clock::now();
  if (!restarts_.changed_plan || asked_to_stop() || now < next_check_for_change_ || !is_ready(status_file_)) return;
  next_check_for_change_ = now + every;
  const std::string log = read_log_path(status_file_);
  if (log.empty() || read_status(status_file_)) return;
  join_log();
  PlanChange change = restarts_.changed_plan(plan_, std::filesystem::path(log).parent_path().string());
  if (change.refused) write_refused_resize(status_file_, *change.refused);
  changed_plan_ = std::move(change.plan);
  is_requested_ = change.is_requested;
  if (!changed_plan_) return;
  if (!read_stop_time(status_file_).fails) return note_request(change_, SIGUSR1, now);
  log::warning(
      format("the run goes on as before, and not with {}, since its last checkpoint could not be written: free "
             "some space first",
             counted(changed_plan_->ranks, "rank")));
  if (is_requested_) {
    write_refused_resize(status_file_, {changed_plan_->ranks, "the last checkpoint could not be written"});
  }
  changed_plan_.reset();
}

void MpirunWatch::stop() {
  if (!asked_to_stop()) return;
  const auto now = std::chrono::steady_clock::now();
  asked_.ready = is_ready(status_file_);
  if (const StopTime needs = read_stop_time(status_file_); needs != asked_.needs) {
    asked_.needs = needs;
    asked_.needs_changed = now;
  }
  switch (stop_action(request(), asked_, now)) {
    case StopAction::wait:
      return;
    case StopAction::relay:
      return relay_request();
    case StopAction::end_unstarted:
      return end_ranks(OutcomeKind::stopped_unstarted, ErrorKind::stopped, std::string(unstarted_text));
    case StopAction::end_at_once:
      return end_ranks(OutcomeKind::interrupted, ErrorKind::interrupted,
                       "stopped at once" + newest_checkpoint(read_log_path(status_file_)));
    case StopAction::end_late:
      return end_late();
  }
}

// Ctrl-C is logged as an info, since the user knows about it; other requests as a warning. The ranks come first, since
// logging may wait for a terminal or a file server.
void MpirunWatch::relay_request() {
  if (changed_plan_ && !requests_.asked) mark_resizing(status_file_);
  if (suspended_since_) kill(child_.pid, SIGCONT);
  kill(child_.pid, SIGUSR1);
  asked_.relayed = true;
  join_log();
  const auto tell = request().asked_by == SIGINT || changed_plan_ ? log::info : log::warning;
  tell(changed_plan_ ? format("stopping after this step, to go on with {}", counted(changed_plan_->ranks, "rank"))
                     : "stopping after this step (Ctrl-C again stops at once)");
}

void MpirunWatch::end_late() {
  if (read_status(status_file_)) return;  // the ranks have ended, only mpirun still runs
  const std::vector<int> suspended = suspended_ranks(), processes = marked_processes(status_file_);
  std::string who;
  for (const int rank : suspended) {
    who += format("{}rank {}, process {}", who.empty() ? " (stopped by a signal: " : "; ", rank,
                  processes[static_cast<std::size_t>(rank)]);
  }
  const double seconds = std::chrono::duration<double>(time_to_stop(request(), asked_)).count();
  end_ranks(OutcomeKind::stop_overdue, ErrorKind::peer,
            format("the ranks did not stop within {:g} s and were ended{}{}{}", seconds, who, who.empty() ? "" : ")",
                   newest_checkpoint(read_log_path(status_file_))));
  if (!suspended.empty()) verdict_->rank = suspended.front();
}

// Returns the ranks of this host that are suspended by a signal.
std::vector<int> MpirunWatch::suspended_ranks() const {
  std::vector<int> ranks;
  const std::vector<int> processes = one_host_ ? marked_processes(status_file_) : std::vector<int>();
  for (std::size_t rank = 0; rank < processes.size(); ++rank) {
    if (is_stopped(processes[rank])) ranks.push_back(static_cast<int>(rank));
  }
  return ranks;
}

// A suspended mpirun forwards neither output nor requests, and does not notice the end of a rank.
void MpirunWatch::watch_mpirun() {
  constexpr std::chrono::seconds warning_after(3);
  if (!suspended_since_ || verdict_) return;
  const auto suspended_for = std::chrono::steady_clock::now() - *suspended_since_;
  const double seconds = std::chrono::duration<double>(timeout_).count();
  if (timeout_.count() > 0 && suspended_for >= timeout_) {
    end_ranks(OutcomeKind::launcher_suspended, ErrorKind::peer,
              format("mpirun (process {}) has been stopped by a signal for {:g} s, and the ranks were ended{}",
                     child_.pid, seconds, newest_checkpoint(read_log_path(status_file_))));
  } else if (!warned_of_suspension_ && suspended_for >= warning_after) {
    warned_of_suspension_ = true;
    join_log();
    const std::string limit = seconds > 0 ? format(", and the run ends after {:g} s (cluster.timeout)", seconds) : "";
    log::warning(
        format("mpirun (process {0}) was stopped by a signal: the ranks' output is suspended{1}; `kill -CONT {0}` "
               "resumes it",
               child_.pid, limit));
  }
}

// Takes the run's directory as soon as rank 0 has claimed it, and keeps it until this process ends. If another process
// looks at the lock just now, the next call takes it.
void MpirunWatch::keep_directory() {
  if (const std::string path = read_log_path(status_file_); !path.empty()) {
    supervision_.directory.take(std::filesystem::path(path).parent_path().string(), supervision_.launch);
  }
}

// Makes this process also log to the run's log from now on.
void MpirunWatch::join_log() {
  const std::string path = read_log_path(status_file_);
  if (path.empty() || path == supervision_.log) return;
  supervision_.log = path;
  try {
    log::add_file(path);
  } catch (const Error& error) {
    log::debug(error.what());
  }
}

void MpirunWatch::reap() {
  int status = 0;
  for (pid_t pid = 0; (pid = waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED)) > 0;) {
    if (pid == child_.pid) note_child(status);
  }
}

void MpirunWatch::note_child(int status) {
  if (WIFSTOPPED(status)) {
    suspended_since_ = std::chrono::steady_clock::now();
    if (asked_.relayed) kill(child_.pid, SIGCONT);  // without this, the request would not reach the ranks
  } else if (WIFCONTINUED(status)) {
    suspended_since_.reset();
    warned_of_suspension_ = false;
  } else {
    ended_ = true;
    code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
}

// Returns whether mpirun still runs although no more output is expected: it returns true a short time after a status or
// mpirun's messages show that the run is over. mpirun may hang while it cleans up after its last rank (seen in PMIx
// 4.2's PMIx_server_finalize), and waits for minutes for a daemon on an unreachable host.
bool MpirunWatch::mpirun_lingers() {
  constexpr std::chrono::seconds limit(5), limit_after_success(30);  // other ranks may still leave in order
  const auto now = std::chrono::steady_clock::now();
  const std::optional<RankStatus> status = read_status(status_file_);
  if (output_.messages().size() != std::exchange(messages_read_, output_.messages().size())) {
    names_cause_ = mpirun_.report(output_.messages()).names_cause();
  }
  const bool failed =
      status ? status->exit_code != 0 && status->exit_code != exit_code(ErrorKind::stopped) : names_cause_;
  if (!run_ended_at_ && (status || failed)) run_ended_at_ = now;
  if (run_ended_at_ && now - *run_ended_at_ > (failed ? limit : limit_after_success)) return true;
  const bool ending = !output_.messages().empty() || status;
  if (!ending || has_children(child_.pid)) last_child_ = now;
  return now - last_child_ > limit;
}

bool MpirunWatch::start_timed_out() const {
  return !suspended_since_ && start_timeout_.count() > 0 && first_rank_here_ &&
         std::chrono::steady_clock::now() - start_ > start_timeout_ && !is_ready(status_file_);
}

// The command of a remote shell that has not ended contains the name of its host.
std::string MpirunWatch::describe_start_timeout() const {
  std::string hosts;
  for (const std::vector<std::string>& command : commands_of_children(child_.pid)) {
    for (const Host& host : hosts_) {
      if (std::find(command.begin(), command.end(), host.name) == command.end()) continue;
      hosts += (hosts.empty() ? "" : ", ") + host.name;
    }
  }
  const double seconds = std::chrono::duration<double>(start_timeout_).count();
  return hosts.empty() ? format("the ranks did not start within {:g} s", seconds)
                       : format("no answer from {} within {:g} s", hosts, seconds);
}

// Returns what to check if the ranks do not start.
const char* MpirunWatch::start_remedy() const {
  if (one_host_) {
    return "a rank, or the program that starts it, hangs before MPI_Init: `ps -ef` shows the processes; see "
           "cluster.start_timeout";
  }
  if (!hosts_answer_) return "`ssh HOST true` must work for each host without a password; see cluster.start_timeout";
  return "remote shells work on all hosts, so the network between them may be the cause: open all TCP ports in both "
         "directions, or choose another network (docs/cluster.md); see cluster.start_timeout";
}

}  // namespace trainctl
