// The loop that waits for mpirun, and relays requests to stop.
#include "parallel/launch/supervisor.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <optional>
#include <string_view>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/log.h"
#include "parallel/launch/outcome.h"
#include "parallel/launch/process.h"
#include "parallel/launch/scratch.h"

namespace trainctl {
namespace {

using Clock = std::chrono::steady_clock;

// Signals of this process, as a descriptor to wait on while the object lives.
class Signals {
 public:
  Signals() {
    signal(SIGCHLD, SIG_DFL);  // a shell may have left it ignored, and then no child can be waited for
    sigset_t set;
    sigemptyset(&set);
    for (int number : {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGUSR1}) sigaddset(&set, number);
    sigprocmask(SIG_BLOCK, &set, &previous_);
    descriptor_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
  }
  ~Signals() {
    prctl(PR_SET_CHILD_SUBREAPER, 0);
    close(descriptor_);
    sigprocmask(SIG_SETMASK, &previous_, nullptr);
  }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  int descriptor() const { return descriptor_; }
  // The next one that has arrived, or 0.
  int next() const {
    signalfd_siginfo info{};
    return read(descriptor_, &info, sizeof info) == sizeof info ? static_cast<int>(info.ssi_signo) : 0;
  }

 private:
  sigset_t previous_{};
  int descriptor_ = -1;
};

class Supervision {
 public:
  Supervision(const Signals& signals, ChildProcess child, std::string status_file, bool first_rank_here)
      : signals_(signals), child_(child), status_file_(std::move(status_file)), first_rank_here_(first_rank_here) {
    for (int pipe : {child_.errors, child_.messages}) fcntl(pipe, F_SETFL, O_NONBLOCK);
  }
  ~Supervision() {
    kill_children();
    for (int pipe : {child_.errors, child_.messages}) close(pipe);
  }
  Supervision(const Supervision&) = delete;
  Supervision& operator=(const Supervision&) = delete;

  // Returns when mpirun has ended, or nothing is to be waited for any more.
  void wait() {
    while (!ended_ && !stopped_at_once_) {
      std::array<pollfd, 3> sources = {
          {{signals_.descriptor(), POLLIN, 0}, {child_.errors, POLLIN, 0}, {child_.messages, POLLIN, 0}}};
      if (errors_closed_) sources[1].fd = -1;
      if (messages_closed_) sources[2].fd = -1;
      poll(sources.data(), sources.size(), requested_ && !relayed_ ? 20 : -1);
      while (const int signal = signals_.next()) on_signal(signal);
      pass_errors_on();
      collect_messages();
      if (requested_ && !relayed_ && ranks_listen()) {
        kill(child_.pid, SIGUSR1);
        relayed_ = true;
      }
    }
    kill_children();  // whom mpirun has left behind
    pass_errors_on();
    collect_messages();
  }

  bool stopped_at_once() const { return stopped_at_once_; }
  const std::string& messages() const { return messages_; }
  int mpirun_code() const { return code_; }

 private:
  void on_signal(int number) {
    if (number == SIGCHLD) {
      reap();
    } else if (number == SIGINT && requested_) {
      stopped_at_once_ = true;
    } else if (!requested_) {
      requested_ = true;
      log::warning("stopping after this step (Ctrl-C again stops at once)");
    }
  }

  void reap() {
    int status = 0;
    for (pid_t pid = 0; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
      if (pid != child_.pid) continue;
      ended_ = true;
      code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
  }

  // Before its ranks have made their StopRequest the signal would kill them.
  bool ranks_listen() const {
    constexpr std::chrono::seconds usual_start(5);  // where rank 0 cannot tell
    return said_ready(status_file_) || (!first_rank_here_ && Clock::now() - start_ > usual_start);
  }

  void pass_errors_on() {
    std::array<char, 65536> buffer{};
    for (ssize_t count = 0; (count = read(child_.errors, buffer.data(), buffer.size())) != -1;) {
      if (count == 0) {
        errors_closed_ = true;
        return;
      }
      std::string text(buffer.data(), static_cast<std::size_t>(count));
      constexpr std::string_view chatter = "mpirun: Forwarding signal 10 to job\n";  // written whole
      if (const std::size_t at = text.find(chatter); at != std::string::npos) text.erase(at, chatter.size());
      for (std::size_t done = 0; done < text.size();) {
        const ssize_t written = write(STDERR_FILENO, text.data() + done, text.size() - done);
        if (written <= 0) return;
        done += static_cast<std::size_t>(written);
      }
    }
  }

  void collect_messages() {
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

  const Signals& signals_;
  ChildProcess child_;
  std::string status_file_;
  bool first_rank_here_;
  Clock::time_point start_ = Clock::now();
  bool requested_ = false;
  bool relayed_ = false;
  bool stopped_at_once_ = false;
  bool ended_ = false;
  bool errors_closed_ = false;
  bool messages_closed_ = false;
  int code_ = 0;
  std::string messages_;
};

// A folder in memory for the segments that ranks of one host share.
std::optional<ScratchFolder> shared_memory_scratch(const LaunchPlan& plan) {
  constexpr const char* file_system = "/dev/shm";
  if (!plan.one_host || access(file_system, W_OK | X_OK) != 0) return {};
  return std::optional<ScratchFolder>(std::in_place, file_system);
}

void append(std::vector<std::string>& words, std::initializer_list<std::string> more) {
  words.insert(words.end(), more);
}

}  // namespace

std::string own_path() { return std::filesystem::read_symlink("/proc/self/exe"); }

int supervise(const LaunchPlan& plan, const std::vector<std::string>& command) {
  const std::string mpirun = find_program("mpirun");
  if (mpirun.empty()) {
    throw Error(ErrorKind::config, "there is no mpirun to start the ranks with",
                "install OpenMPI (Debian, Ubuntu: apt-get install openmpi-bin), or use --ranks 1");
  }
  const Signals signals;  // from here on no request is lost
  const char* chosen = std::getenv("TMPDIR");
  const ScratchFolder scratch(chosen != nullptr && *chosen != '\0' ? chosen : "/tmp");
  const std::optional<ScratchFolder> memory = shared_memory_scratch(plan);
  const std::string status_file = scratch.path() + "/status";

  std::vector<std::string> words = plan.mpirun;
  words.front() = mpirun;
  Variables::Map environment = plan.environment;
  environment[std::string(status_file_variable)] = status_file;
  append(words, {"-x", std::string(status_file_variable)});
  winsize window{};
  if (isatty(STDERR_FILENO) != 0 && ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0) {
    environment[std::string(terminal_variable)] = std::to_string(window.ws_col > 0 ? window.ws_col : 80);
    append(words, {"-x", std::string(terminal_variable)});
  }
  // mpirun's own messages come apart from what the ranks print.
  environment["OPAL_OUTPUT_STDERR_FD"] = std::to_string(messages_descriptor);
  append(words, {"-x", format("OPAL_OUTPUT_STDERR_FD={}", STDERR_FILENO)});
  if (plan.one_host) append(words, {"--mca", "orte_tmpdir_base", scratch.path()});
  if (memory) append(words, {"--mca", "btl_vader_backing_directory", memory->path()});
  words.insert(words.end(), command.begin(), command.end());

  Supervision supervision(signals, start_process(words, environment), status_file, plan.first_rank_here);
  supervision.wait();
  if (supervision.stopped_at_once()) {
    log::warning("stopped at once");
    return exit_code(ErrorKind::interrupted);
  }
  const RankStatus end = conclude(read_status(status_file), supervision.messages(), supervision.mpirun_code());
  if (!end.message.empty()) log::error(end.message);
  return end.exit_code;
}

}  // namespace trainctl
