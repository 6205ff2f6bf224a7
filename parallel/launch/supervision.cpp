// The loop that waits for mpirun.
#include "parallel/launch/supervision.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "core/base/format.h"
#include "core/base/log.h"
#include "parallel/launch/status.h"

namespace trainctl {
namespace {

void print(const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t written = write(STDERR_FILENO, text.data() + done, text.size() - done);
    if (written <= 0) return;
    done += static_cast<std::size_t>(written);
  }
}

}  // namespace

Signals::Signals() {
  signal(SIGCHLD, SIG_DFL);  // a shell may have left it ignored, and then no child can be waited for
  sigset_t set;
  sigemptyset(&set);
  for (int number : {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGUSR1}) sigaddset(&set, number);
  sigprocmask(SIG_BLOCK, &set, &previous_);
  descriptor_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
}

Signals::~Signals() {
  prctl(PR_SET_CHILD_SUBREAPER, 0);
  close(descriptor_);
  sigprocmask(SIG_SETMASK, &previous_, nullptr);
}

int Signals::next() const {
  signalfd_siginfo info{};
  return read(descriptor_, &info, sizeof info) == sizeof info ? static_cast<int>(info.ssi_signo) : 0;
}

Supervision::Supervision(const Signals& signals, const ChildProcess& mpirun, std::string status_file,
                         const LaunchPlan& plan)
    : signals_(signals),
      child_(mpirun),
      status_file_(std::move(status_file)),
      first_rank_here_(plan.first_rank_here),
      patience_(plan.patience),
      hosts_(plan.hosts) {
  for (int pipe : {child_.errors, child_.messages}) fcntl(pipe, F_SETFL, O_NONBLOCK);
}

Supervision::~Supervision() {
  kill_children();
  for (int pipe : {child_.errors, child_.messages}) close(pipe);
}

void Supervision::wait() {
  while (!ended_ && !stopped_at_once_) {
    std::array<pollfd, 3> sources = {
        {{signals_.descriptor(), POLLIN, 0}, {child_.errors, POLLIN, 0}, {child_.messages, POLLIN, 0}}};
    if (errors_closed_) sources[1].fd = -1;
    if (messages_closed_) sources[2].fd = -1;
    poll(sources.data(), sources.size(), requested_ && !relayed_ ? 20 : 500);
    while (const int signal = signals_.next()) on_signal(signal);
    pass_errors_on();
    if (!shown_ && !ended_ && !keeps_back()) show_kept_back();
    collect_messages();
    if (requested_ && !relayed_ && ranks_listen()) {
      kill(child_.pid, SIGUSR1);
      relayed_ = true;
    }
    if (!ended_ && is_late()) why_not_started_ = describe_lateness();
    if (!ended_ && (!why_not_started_.empty() || is_stuck())) {
      code_ = 1;
      break;
    }
  }
  kill_children();  // whom mpirun has left behind
  pass_errors_on();
  collect_messages();
}

void Supervision::on_signal(int number) {
  if (number == SIGCHLD) {
    reap();
  } else if (number == SIGINT && requested_) {
    stopped_at_once_ = true;
  } else if (!requested_) {
    requested_ = true;
    log::warning("stopping after this step (Ctrl-C again stops at once)");
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

// Before its ranks have made their StopRequest the signal would kill them.
bool Supervision::ranks_listen() const {
  constexpr std::chrono::seconds usual_start(5);  // where rank 0 cannot tell
  return said_ready(status_file_) || (!first_rank_here_ && std::chrono::steady_clock::now() - start_ > usual_start);
}

// mpirun may lock itself up while it cleans up after its last rank (seen in PMIx 4.2's PMIx_server_finalize): once the
// run is over, by a status or by words of mpirun, and its children have been gone for a while, nothing more will come.
bool Supervision::is_stuck() {
  constexpr std::chrono::seconds patience(5);
  const auto now = std::chrono::steady_clock::now();
  const bool ending = !messages_.empty() || read_status(status_file_).has_value();
  if (!ending || has_children(child_.pid)) last_child_ = now;
  return now - last_child_ > patience;
}

bool Supervision::is_late() const {
  return patience_.count() > 0 && first_rank_here_ && std::chrono::steady_clock::now() - start_ > patience_ &&
         !said_ready(status_file_);
}

// A remote shell that has not come back has the name of its host among its words.
std::string Supervision::describe_lateness() const {
  std::string hosts;
  for (const std::vector<std::string>& command : commands_of_children(child_.pid)) {
    for (const Host& host : hosts_) {
      if (std::find(command.begin(), command.end(), host.name) == command.end()) continue;
      hosts += (hosts.empty() ? "" : ", ") + host.name;
    }
  }
  const double seconds = std::chrono::duration<double>(patience_).count();
  return hosts.empty() ? format("the ranks did not start within {:g} s", seconds)
                       : format("no answer from {} within {:g} s", hosts, seconds);
}

void Supervision::pass_errors_on() {
  std::array<char, 65536> buffer{};
  for (ssize_t count = 0; (count = read(child_.errors, buffer.data(), buffer.size())) != -1;) {
    if (count == 0) {
      errors_closed_ = true;
      return;
    }
    std::string text(buffer.data(), static_cast<std::size_t>(count));
    constexpr std::string_view chatter = "mpirun: Forwarding signal 10 to job\n";  // written whole
    if (const std::size_t at = text.find(chatter); at != std::string::npos) text.erase(at, chatter.size());
    if (keeps_back()) {
      kept_back_ += text;
    } else {
      show_kept_back();
      print(text);
    }
  }
}

// Ranks that start take a moment: what they print then is shown with what comes after, or when that lasts too long.
bool Supervision::keeps_back() const {
  constexpr std::chrono::seconds patience(10);
  constexpr std::size_t enough = 1 << 18;
  return !shown_ && first_rank_here_ && kept_back_.size() < enough &&
         std::chrono::steady_clock::now() - start_ < patience && !said_ready(status_file_);
}

void Supervision::show_kept_back() {
  print(std::exchange(kept_back_, ""));
  shown_ = true;
}

void Supervision::collect_messages() {
  constexpr std::size_t enough = 1 << 18;
  std::array<char, 4096> buffer{};
  for (ssize_t count = 0; (count = read(child_.messages, buffer.data(), buffer.size())) != -1;) {
    if (count == 0) {
      messages_closed_ = true;
      return;
    }
    if (messages_.size() < enough) messages_.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

}  // namespace trainctl
