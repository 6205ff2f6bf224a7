// The loop that waits for mpirun.
#include "parallel/launch/supervision.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/log.h"
#include "core/base/output.h"
#include "parallel/launch/remote/bounded_text.h"
#include "parallel/launch/status.h"
#include "parallel/launch/stop.h"

namespace trainctl {
namespace {

// Hands all that is there to be read to `take`. Returns false once the other side has closed.
template <class Take>
bool read_all(int descriptor, const Take& take) {
  std::array<char, 65536> buffer{};
  ssize_t count = 0;
  while ((count = read(descriptor, buffer.data(), buffer.size())) > 0) {
    take(std::string_view(buffer.data(), static_cast<std::size_t>(count)));
  }
  return count != 0;
}

// Signals that nobody sends here for a purpose, and that end a process unless it handles them.
std::vector<int> other_ends() {
  std::vector<int> numbers = {SIGQUIT, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGIO, SIGPWR, SIGSTKFLT, SIGXCPU};
  for (int number = SIGRTMIN; number <= SIGRTMAX; ++number) numbers.push_back(number);
  return numbers;
}

bool is_other_end(int number) {
  const std::vector<int> numbers = other_ends();
  return std::find(numbers.begin(), numbers.end(), number) != numbers.end();
}

}  // namespace

Signals::Signals() {
  signal(SIGCHLD, SIG_DFL);  // a shell may have left it ignored, and then no child can be waited for
  sigset_t set;
  sigemptyset(&set);
  for (int number : {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGUSR1}) sigaddset(&set, number);
  for (int number : other_ends()) sigaddset(&set, number);
  sigprocmask(SIG_BLOCK, &set, &previous_);
  descriptor_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
}

Signals::~Signals() {
  prctl(PR_SET_CHILD_SUBREAPER, 0);
  close(descriptor_);
  ignore_requests();
  sigprocmask(SIG_SETMASK, &previous_, nullptr);
}

int Signals::next() const {
  signalfd_siginfo info{};
  return read(descriptor_, &info, sizeof info) == sizeof info ? static_cast<int>(info.ssi_signo) : 0;
}

Supervision::Supervision(const Signals& signals, const ChildProcess& child, std::string status_file,
                         const LaunchPlan& plan, Mpirun& mpirun, const SupervisionOptions& options)
    : signals_(signals),
      mpirun_(mpirun),
      child_(child),
      status_file_(std::move(status_file)),
      first_rank_here_(plan.first_rank_here),
      one_host_(plan.one_host),
      options_(options),
      start_timeout_(plan.start_timeout),
      hosts_(plan.hosts) {
  for (int pipe : {child_.output, child_.errors, child_.messages}) fcntl(pipe, F_SETFL, O_NONBLOCK);
}

Supervision::~Supervision() {
  kill_children();
  for (int pipe : {child_.output, child_.errors, child_.messages}) close(pipe);
  for (int rank : ranks_) close(rank);
}

void Supervision::wait() {
  constexpr std::chrono::milliseconds start_limit(1500);  // for ranks that were asked to stop while they start
  while (!ended_ && !stopped_at_once_) {
    watch_ranks();
    std::vector<pollfd> sources = {{{signals_.descriptor(), POLLIN, 0},
                                    {output_closed_ ? -1 : child_.output, POLLIN, 0},
                                    {errors_closed_ ? -1 : child_.errors, POLLIN, 0},
                                    {messages_closed_ ? -1 : child_.messages, POLLIN, 0},
                                    {backlog_.empty() || !shown_ ? -1 : STDERR_FILENO, POLLOUT, 0}}};
    for (int rank : ranks_) sources.push_back({rank, POLLIN, 0});
    const bool hurries = (requested_ && !relayed_) || (one_host_ && ranks_.empty());
    poll(sources.data(), sources.size(), hurries ? 20 : 500);
    see_ranks();
    while (const int signal = signals_.next()) on_signal(signal);
    forward_output();
    forward_errors();
    collect_messages();
    if (requested_ && !relayed_) {
      if (ranks_handle_signals()) {
        kill(child_.pid, SIGUSR1);
        relayed_ = true;
      } else if (first_rank_here_ && std::chrono::steady_clock::now() - request_ > start_limit) {
        stopped_at_once_ = true;  // nothing was trained yet
      }
    }
    if (!ended_ && start_timed_out()) why_not_started_ = describe_start_timeout();
    if (!ended_ && (!why_not_started_.empty() || mpirun_hangs())) {
      code_ = 1;
      break;
    }
  }
  kill_children();  // whom mpirun has left behind
  forward_output();
  forward_errors();
  collect_messages();
  join_log();
}

// Opens the processes of all ranks once they are known; kernels before 5.3 cannot.
void Supervision::watch_ranks() {
  if (!one_host_ || !ranks_.empty() || !is_ready(status_file_)) return;
  for (const int process : marked_processes(status_file_)) {
    ranks_.push_back(static_cast<int>(syscall(SYS_pidfd_open, process, 0)));
  }
}

// A rank that ends is seen at the same moment by its launcher, which then ends the others: of several that have ended
// since the last look any may be the first.
void Supervision::see_ranks() {
  std::vector<int> gone;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    pollfd process{ranks_[rank], POLLIN, 0};
    if (poll(&process, 1, 0) > 0 && (process.revents & POLLIN) != 0) gone.push_back(static_cast<int>(rank));
  }
  if (gone.empty()) return;
  if (gone.size() == 1) first_gone_ = gone.front();
  for (int& rank : ranks_) close(std::exchange(rank, -1));
}

void Supervision::on_signal(int number) {
  if (number == SIGCHLD) {
    reap();
  } else if (!options_.stops_in_order || (number == SIGINT && requested_) || is_other_end(number)) {
    stopped_at_once_ = true;
  } else if (!requested_) {
    requested_ = true;
    request_ = std::chrono::steady_clock::now();
    join_log();
    log::warning("stopping after this step (Ctrl-C again stops at once)");
  }
}

// From now on what this process logs stands in the run's log, too.
void Supervision::join_log() {
  const std::string path = in_log_ ? "" : read_log_path(status_file_);
  if (path.empty()) return;
  in_log_ = true;
  try {
    log::add_file(path);
  } catch (const Error& error) {
    log::debug(error.what());
  }
}

void Supervision::reap() {
  int status = 0;
  for (pid_t pid = 0; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
    if (pid != child_.pid) continue;
    ended_ = true;
    code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
}

// Whether the ranks handle SIGUSR1 already; before that the signal would kill them.
bool Supervision::ranks_handle_signals() const {
  constexpr std::chrono::seconds usual_start(5);  // where rank 0 cannot tell
  return is_ready(status_file_) || (!first_rank_here_ && std::chrono::steady_clock::now() - start_ > usual_start);
}

// mpirun may lock itself up while it cleans up after its last rank (seen in PMIx 4.2's PMIx_server_finalize): once the
// run is over, by a status or by words of mpirun, and its children have been gone for a while, nothing more will come.
bool Supervision::mpirun_hangs() {
  constexpr std::chrono::seconds limit(5);
  const auto now = std::chrono::steady_clock::now();
  const bool ending = !messages_.empty() || read_status(status_file_).has_value();
  if (!ending || has_children(child_.pid)) last_child_ = now;
  return now - last_child_ > limit;
}

// What mpirun says beside the ranks' output is moved to its own messages.
std::string Supervision::without_own_words(std::string_view text) {
  constexpr std::size_t tail = 8192;
  std::string rest(text);
  append_within(messages_, mpirun_.take_own_words(rest), most_remote_text);
  last_words_.append(rest);
  if (last_words_.size() > tail) last_words_.erase(0, last_words_.size() - tail);
  return rest;
}

void Supervision::forward_output() {
  const bool open = read_all(child_.output, [this](std::string_view all) {
    const std::string text = without_own_words(all);
    if (options_.holds_output) {
      output_.append(text);
    } else if (output_error_ == 0) {
      output_error_ = write_all(STDOUT_FILENO, text);
    }
  });
  if (!open) output_closed_ = true;
}

bool Supervision::start_timed_out() const {
  return start_timeout_.count() > 0 && first_rank_here_ && std::chrono::steady_clock::now() - start_ > start_timeout_ &&
         !is_ready(status_file_);
}

// A remote shell that has not come back has the name of its host among its words.
std::string Supervision::describe_start_timeout() const {
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

void Supervision::forward_errors() {
  constexpr std::size_t enough = 1 << 20;  // training does not wait for a screen that stands still
  const bool open = read_all(child_.errors, [this](std::string_view text) {
    const std::string rest = without_own_words(text);  // mpirun writes its lines whole
    if (backlog_.size() <= enough) backlog_.append(rest);
  });
  if (!open) errors_closed_ = true;
  write_backlog();
}

// Writes as much as standard error takes without waiting, and drops the rest where its reader has gone.
void Supervision::write_backlog() {
  if (!shown_ && holds_errors()) return;
  shown_ = true;
  constexpr std::size_t chunk = 4096;  // a pipe that can be written takes as much
  while (!backlog_.empty()) {
    pollfd ready{STDERR_FILENO, POLLOUT, 0};
    if (poll(&ready, 1, 0) <= 0 || (ready.revents & (POLLOUT | POLLERR | POLLNVAL | POLLHUP)) == 0) return;
    const ssize_t written = write(STDERR_FILENO, backlog_.data(), std::min(chunk, backlog_.size()));
    backlog_.erase(0, written > 0 ? static_cast<std::size_t>(written) : backlog_.size());
  }
}

// Standard error is held while the ranks start, up to a limit of time and size.
bool Supervision::holds_errors() const {
  constexpr std::chrono::seconds limit(10);
  constexpr std::size_t enough = 1 << 18;
  return first_rank_here_ && backlog_.size() < enough && std::chrono::steady_clock::now() - start_ < limit &&
         !is_ready(status_file_);
}

void Supervision::show_held_errors() {
  shown_ = true;
  write_backlog();
}

void Supervision::collect_messages() {
  constexpr std::size_t enough = 1 << 18;
  const bool open = read_all(child_.messages, [this](std::string_view text) {
    if (messages_.size() < enough) messages_.append(text);
  });
  if (!open) messages_closed_ = true;
}

}  // namespace trainctl
