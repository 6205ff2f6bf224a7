// Runs commands by /bin/sh, each in its own process group. A second shell kills the group if this process is killed.
#include "io/metrics/callbacks/command_queue.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/blocked_signals.h"
#include "core/base/format.h"
#include "core/base/log.h"

extern char** environ;

namespace trainctl {

// Kills the guarded process group as soon as this process has ended for any reason. To do this, a shell waits for the
// end of a pipe from this process. If the shell cannot be started, no group is guarded.
class GroupGuard {
 public:
  GroupGuard();
  ~GroupGuard();
  GroupGuard(const GroupGuard&) = delete;
  GroupGuard& operator=(const GroupGuard&) = delete;

  // The pipe to which the leader of the guarded group writes its process number; -1 if no group is guarded.
  int descriptor() const { return pipe_; }
  // Stops guarding the group.
  void release();

 private:
  int pipe_ = -1;
  pid_t shell_ = -1;
};

namespace {

// The shell ignores the signals that end a session or the processes of a terminal, since it must outlive this process.
constexpr const char* guard_script =
    "trap '' HUP INT QUIT TERM USR1 USR2; while read -r line; do group=$line; done; "
    "[ -z \"$group\" ] || kill -KILL \"-$group\"";

// Runs before a command: names the command's process group to the guard, whose pipe is descriptor 3. The command's own
// shell does this, because this process may be killed as soon as the command runs.
constexpr const char* guarded_script = "(trap '' PIPE; echo $$ >&3) 2>/dev/null; exec 3>&-; exec /bin/sh -c \"$0\"";

// Whether the variable would make a program believe that it is a rank of this run. Commands must not have such
// variables.
bool is_rank_variable(std::string_view variable) {
  static constexpr std::array<std::string_view, 11> prefixes{"OMPI_",
                                                             "PMIX_",
                                                             "PMI_",
                                                             "MPI_LOCAL",
                                                             "SLURM_STEP",
                                                             "SLURM_PROCID=",
                                                             "SLURM_LOCALID=",
                                                             "SLURM_NODEID=",
                                                             "TRAINCTL_TERM",
                                                             "TRAINCTL_STATUS_FILE=",
                                                             "TRAINCTL_CONFIG_TEXT"};
  for (const std::string_view prefix : prefixes) {
    if (variable.starts_with(prefix)) return true;
  }
  return false;
}

std::vector<std::string> environment_of(const CommandQueue::Command& command) {
  std::vector<std::string> all;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    if (!is_rank_variable(text) && !command.environment.contains(std::string(text.substr(0, text.find('='))))) {
      all.emplace_back(text);
    }
  }
  for (const auto& [name, value] : command.environment) all.push_back(name + "=" + value);
  return all;
}

// Opens the file for the output of commands; returns -1 and sets errno if it fails, which includes a pipe without a
// reader.
int open_command_log(const std::string& path) {
  return open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_CLOEXEC, 0666);
}

// Starts the command and returns its process, or returns -1 and sets errno. `guard`: see GroupGuard::descriptor().
pid_t start(const CommandQueue::Command& command, const std::string& log_file, int guard) {
  const int log = open_command_log(log_file);
  if (log < 0) return -1;
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, log, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
  if (guard >= 0) posix_spawn_file_actions_adddup2(&files, guard, 3);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, usual;
  sigemptyset(&none);
  sigfillset(&usual);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &usual);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  std::vector<std::string> variables = environment_of(command);
  std::vector<char*> environment;
  for (std::string& variable : variables) environment.push_back(variable.data());
  environment.push_back(nullptr);
  std::string shell = "sh", option = "-c", script = guarded_script, text = command.text;
  char* const guarded[] = {shell.data(), option.data(), script.data(), text.data(), nullptr};
  char* const unguarded[] = {shell.data(), option.data(), text.data(), nullptr};
  pid_t process = -1;
  const int error =
      posix_spawn(&process, "/bin/sh", &files, &attributes, guard >= 0 ? guarded : unguarded, environment.data());
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  close(log);
  errno = error;
  return error == 0 ? process : -1;
}

std::chrono::steady_clock::duration seconds(double count) {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(count));
}

}  // namespace

GroupGuard::GroupGuard() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return;
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, ends[0], STDIN_FILENO);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  std::string shell = "sh", option = "-c", text = guard_script;
  char* const arguments[] = {shell.data(), option.data(), text.data(), nullptr};
  const int error = posix_spawn(&shell_, "/bin/sh", &files, &attributes, arguments, environ);
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  close(ends[0]);
  if (error == 0) {
    pipe_ = ends[1];
  } else {
    close(ends[1]);
    shell_ = -1;
  }
}

GroupGuard::~GroupGuard() {
  if (shell_ < 0) return;
  release();
  close(std::exchange(pipe_, -1));
  waitpid(shell_, nullptr, 0);
}

void GroupGuard::release() {
  if (pipe_ >= 0 && write(pipe_, "\n", 1) < 0) {  // the shell has ended: no group is guarded
    close(std::exchange(pipe_, -1));
  }
}

CommandQueue::CommandQueue(std::string log_file)
    : log_file_(std::move(log_file)), guard_(std::make_unique<GroupGuard>()) {
  const BlockedSignals blocked;
  worker_ = std::thread([this] { work(); });
}

CommandQueue::~CommandQueue() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    end_ = Clock::now() + seconds(longest_timeout_);
  }
  changed_.notify_one();
  worker_.join();
  if (!commands_.empty())
    log::warning(format("{} callbacks were not run before their timeout at the end of the run", commands_.size()));
}

void CommandQueue::add(Command command) {
  {
    const std::lock_guard lock(mutex_);
    longest_timeout_ = std::max(longest_timeout_, command.timeout);
    commands_.push_back(std::move(command));
  }
  changed_.notify_one();
}

CommandQueue::Clock::time_point CommandQueue::end_of_all() {
  const std::lock_guard lock(mutex_);
  return ends_ ? end_ : Clock::time_point::max();
}

std::string CommandQueue::run(const Command& command) {
  const pid_t process = start(command, log_file_, guard_->descriptor());
  if (process < 0) return format("cannot be started: {}", strerror(errno));
  const std::string failure = wait(process, command);
  guard_->release();
  return failure;
}

std::string CommandQueue::wait(pid_t process, const Command& command) {
  const Clock::time_point begin = Clock::now(), deadline = begin + seconds(command.timeout);
  int status = 0;
  auto pause = std::chrono::milliseconds(1);
  for (;;) {
    const pid_t ended = waitpid(process, &status, WNOHANG);
    if (ended == process) break;
    if (ended < 0 && errno != EINTR) return {};  // the process was already waited for
    if (const Clock::time_point now = Clock::now(); now > deadline || now > end_of_all()) {
      kill(-process, SIGKILL);
      waitpid(process, &status, 0);
      return format("had not ended after {:.3g} s, and was killed", std::chrono::duration<double>(now - begin).count());
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, std::chrono::milliseconds(50));
  }
  if (WIFSIGNALED(status)) return format("was killed by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  return WEXITSTATUS(status) == 0 ? "" : format("ended with exit code {}", WEXITSTATUS(status));
}

void CommandQueue::work() {
  for (;;) {
    Command command;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return ends_ || !commands_.empty(); });
      if (commands_.empty() || (ends_ && Clock::now() > end_)) return;
      command = std::move(commands_.front());
      commands_.pop_front();
    }
    const std::string failure = run(command);
    if (!failure.empty()) {
      log::warning(format("the callback `{}` {}; its output is in {}", command.text, failure, log_file_));
    }
  }
}

}  // namespace trainctl
