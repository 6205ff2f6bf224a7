// Runs a child process and reads its output, until the child ends or a request to stop arrives.
#include "parallel/launch/host/child_run.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>

#include "core/base/error.h"
#include "parallel/launch/host/process.h"

namespace trainctl {
namespace {

class Child {
 public:
  Child(const Signals& signals, const std::vector<std::string>& command)
      : signals_(signals), process_(start_process(command, {})) {
    for (const int pipe : pipes()) fcntl(pipe, F_SETFL, O_NONBLOCK);
  }
  ~Child() {
    kill_children();
    for (const int pipe : pipes()) close(pipe);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  ChildEnd wait(const std::function<void(std::string_view line)>& take) {
    while (!ended_ && !gives_up()) {
      std::array<pollfd, 4> sources = {{{signals_.descriptor(), POLLIN, 0},
                                        {process_.output, POLLIN, 0},
                                        {process_.errors, POLLIN, 0},
                                        {process_.messages, POLLIN, 0}}};
      for (std::size_t i = 0; i < closed_.size(); ++i) {
        if (closed_[i]) sources[i + 1].fd = -1;
      }
      poll(sources.data(), sources.size(), 200);
      while (const int signal = signals_.next()) on_signal(signal);
      read_all(take);
    }
    read_all(take);
    if (stopped_) throw Error(ErrorKind::interrupted, "stopped at once");
    return {code_, texts_[1]};
  }

 private:
  std::array<int, 3> pipes() const { return {process_.output, process_.errors, process_.messages}; }

  // A child that was asked to stop has five seconds to end.
  bool gives_up() const { return stopped_ && std::chrono::steady_clock::now() - stopped_at_ > std::chrono::seconds(5); }

  void on_signal(int number) {
    if (number == SIGCHLD) {
      int status = 0;
      for (pid_t pid = 0; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
        if (pid != process_.pid) continue;
        ended_ = true;
        code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      }
    } else if (!stopped_) {
      stopped_ = true;
      stopped_at_ = std::chrono::steady_clock::now();
      kill(process_.pid, SIGTERM);
    }
  }

  void read_all(const std::function<void(std::string_view line)>& take) {
    std::array<char, 65536> buffer{};
    for (std::size_t i = 0; i < texts_.size(); ++i) {
      ssize_t count = 0;
      while ((count = read(pipes()[i], buffer.data(), buffer.size())) > 0) {
        append_within(texts_[i], {buffer.data(), static_cast<std::size_t>(count)}, max_remote_text);
        if (i == 0) take_lines(take);
      }
      closed_[i] = count == 0;
    }
  }

  void take_lines(const std::function<void(std::string_view line)>& take) {
    std::string& output = texts_[0];
    for (std::size_t end = 0; (end = output.find('\n')) != std::string::npos; output.erase(0, end + 1)) {
      take(std::string_view(output).substr(0, end));
    }
  }

  const Signals& signals_;
  ChildProcess process_;
  std::array<std::string, 3> texts_;  // the last incomplete line of the output; all errors; all messages
  std::array<bool, 3> closed_{};
  bool ended_ = false, stopped_ = false;
  std::chrono::steady_clock::time_point stopped_at_;
  int code_ = 0;
};

}  // namespace

ChildEnd run_child(const Signals& signals, const std::vector<std::string>& command,
                   const std::function<void(std::string_view line)>& take) {
  return Child(signals, command).wait(take);
}

}  // namespace trainctl
