// The launch agent: listens for the chief and serves each connection in its own process.
#include "parallel/launch/agent/agent.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <optional>
#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/log.h"
#include "core/base/memory_folder.h"
#include "parallel/launch/agent/channel.h"
#include "parallel/launch/agent/connections.h"
#include "parallel/launch/agent/secret.h"
#include "parallel/launch/host/process.h"
#include "parallel/launch/ranks/report.h"
#include "parallel/launch/supervisor/signals.h"
#include "parallel/launch/supervisor/stopping.h"

namespace trainctl {
namespace {

constexpr std::size_t max_connections = 64;
constexpr std::chrono::seconds handshake_time(10);

// A message from the process of a connection to the agent.
struct Report {
  enum class Kind { proven, refused, chief_came, chief_went, job_ended } kind{};
  int exit_code = 0;
  pid_t process = getpid();
  std::array<char, 256> launch{};  // of the chief that came: the name of its supervisor, which ends with a zero
};

// The data that the process of a connection needs.
struct Served {
  int socket;
  const std::string& agent;  // name of this agent's task
  const std::string& secret;
  bool leased;  // whether the chief has connected and holds its lease
  int reports;  // pipe to the agent for Reports
};

// Sends all data that the pipe contains; returns false if the connection is lost.
bool pass_on(int pipe, MessageKind kind, AgentChannel& channel) {
  std::array<char, 65536> buffer{};
  ssize_t count = 0;
  while ((count = read(pipe, buffer.data(), buffer.size())) > 0) {
    if (!channel.send(kind, std::string_view(buffer.data(), static_cast<std::size_t>(count)))) return false;
  }
  return true;
}

// What the chief sends for the standard input of a command. It is kept until the command reads it.
class CommandInput {
 public:
  explicit CommandInput(int pipe) : pipe_(pipe) { fcntl(pipe_, F_SETFL, O_NONBLOCK); }
  ~CommandInput() { end(); }
  CommandInput(const CommandInput&) = delete;
  CommandInput& operator=(const CommandInput&) = delete;

  // Takes the chief's next message. Returns false if the connection has ended, or for a command that does not read.
  bool receive(AgentChannel& channel) {
    const std::optional<Message> message = channel.receive();
    if (!message || message->kind != MessageKind::input) return false;
    has_ended_ = has_ended_ || message->text.empty();
    unread_ += message->text;
    write_unread();
    constexpr std::size_t most = 4 << 20;
    return unread_.size() <= most;
  }

  void write_unread() {
    while (pipe_ >= 0 && !unread_.empty()) {
      const ssize_t count = write(pipe_, unread_.data(), unread_.size());
      if (count < 0 && errno == EAGAIN) return;
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return end();  // the command has closed its input
      unread_.erase(0, static_cast<std::size_t>(count));
    }
    if (has_ended_) end();
  }

  // The pipe to wait for until it has space; -1 if nothing is left to be written.
  int waits_for() const { return unread_.empty() ? -1 : pipe_; }

 private:
  void end() {
    unread_.clear();
    if (pipe_ >= 0) close(std::exchange(pipe_, -1));
  }

  int pipe_;
  std::string unread_;
  bool has_ended_ = false;
};

// Runs a command line in a shell, passes it the chief's input, and sends its output, then its exit code. If the
// connection ends first, kills the command and all processes that it has started. The calling process must not do
// anything else.
void run_for_chief(AgentChannel& channel, const std::string& command) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  signal(SIGPIPE, SIG_IGN);  // the command may close its input
  // A stop signal that is sent to all processes of this host must not end the shell, since the ranks save first.
  const ChildProcess process = start_process({"/bin/sh", "-c", "trap '' HUP INT TERM; " + command}, {}, Input::pipe);
  for (const int pipe : {process.output, process.errors, process.messages}) fcntl(pipe, F_SETFL, O_NONBLOCK);
  CommandInput input(process.input);
  const auto pass_all = [&] {
    return pass_on(process.output, MessageKind::output, channel) &&
           pass_on(process.errors, MessageKind::errors, channel);
  };
  for (;;) {
    constexpr int poll_milliseconds = 100;  // how often it checks whether the command has ended
    std::array<pollfd, 4> sources = {{{channel.descriptor(), POLLIN, 0},
                                      {process.output, POLLIN, 0},
                                      {process.errors, POLLIN, 0},
                                      {input.waits_for(), POLLOUT, 0}}};
    poll(sources.data(), sources.size(), poll_milliseconds);
    int status = 0;
    const bool ended = waitpid(process.pid, &status, WNOHANG) == process.pid;
    if (!pass_all()) break;
    input.write_unread();
    if (sources[0].revents != 0 && !input.receive(channel)) break;  // the chief has closed the connection
    if (!ended) continue;
    channel.send(MessageKind::end, std::to_string(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status)));
    break;
  }
  kill_children();
}

// Serves one connection. Runs in its own process, so that a slow peer does not block other peers. Throws Error{peer}
// for a message that the peer has not sent.
void serve_connection(const Served& served) {
  const auto report = [&served](Report::Kind kind, int code = 0, const std::string& launch = "") {
    Report text{kind, code};
    if (launch.size() < text.launch.size()) std::copy(launch.begin(), launch.end(), text.launch.begin());
    [[maybe_unused]] const ssize_t written = write(served.reports, &text, sizeof text);
  };
  std::optional<AgentChannel> proven;
  try {
    const auto deadline = std::chrono::steady_clock::now() + handshake_time;
    proven.emplace(served.socket, AgentChannel::Side::agent, served.agent, served.secret, deadline);
  } catch (const Error&) {
    return report(Report::Kind::refused);
  }
  AgentChannel& channel = *proven;
  report(Report::Kind::proven);
  const std::optional<Message> first = channel.receive();
  if (!first) return;
  if (first->kind == MessageKind::command && served.leased) return run_for_chief(channel, first->text);
  if (first->kind != MessageKind::lease) return;
  report(Report::Kind::chief_came, 0, first->text);
  channel.send(MessageKind::lease, "");  // from now on the agent knows that the chief is connected
  std::optional<Message> last;
  try {
    last = channel.receive();
  } catch (const Error&) {
    last.reset();  // an error counts as a lost connection
  }
  if (!last || last->kind != MessageKind::end) return report(Report::Kind::chief_went);
  report(Report::Kind::job_ended, std::atoi(last->text.c_str()));
}

class Agent {
 public:
  Agent(const TfTask& own, const std::string& secret, const AgentPatience& patience)
      : name_(own.name()), secret_(secret), listener_(listen_at(own.host, own.port)) {
    asked_.patience = patience.stop;
    asked_.least = patience.least;
    asked_.ready = true;
    asked_.needs.saves = true;  // only the chief knows how long a save takes
    if (patience.start.count() > 0) patience_ends_ = std::chrono::steady_clock::now() + patience.start;
    if (pipe2(reports_.data(), O_CLOEXEC | O_NONBLOCK) != 0) throw Error(ErrorKind::resource, "cannot create a pipe");
  }
  ~Agent() {
    kill_children();
    remove_copies();
    for (const int descriptor : {listener_, reports_[0], reports_[1]}) close(descriptor);
  }
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  // Serves until the job ends, and returns its exit code.
  int serve(const std::string& chief) {
    for (;;) {
      std::array<pollfd, 3> sources = {
          {{signals_.descriptor(), POLLIN, 0}, {listener_, POLLIN, 0}, {reports_[0], POLLIN, 0}}};
      poll(sources.data(), sources.size(), 200);
      while (const int signal = signals_.next()) on_signal(signal);
      stop();
      Report report;
      while (read(reports_[0], &report, sizeof report) == sizeof report) {
        if (report.kind == Report::Kind::proven) connections_.has_proven(report.process);
        if (report.kind == Report::Kind::refused) refusals_.refused();
        if (report.kind == Report::Kind::job_ended) return report.exit_code;
        if (report.kind == Report::Kind::chief_went) {
          throw Error(ErrorKind::peer, format("{} disconnected without reporting how the job ended", chief),
                      "see its log");
        }
        if (report.kind != Report::Kind::chief_came) continue;
        leased_ = true;
        launch_ = report.launch.data();
        log::info(format("{} has connected", chief));
      }
      if (const std::string line = refusals_.line_at(std::chrono::steady_clock::now()); !line.empty()) {
        log::warning(line);
      }
      if ((sources[1].revents & POLLIN) != 0) accept_connection();
      if (!leased_ && patience_ends_ && std::chrono::steady_clock::now() > *patience_ends_) {
        throw Error(ErrorKind::peer, format("{} did not connect in time", chief),
                    "see its log, and cluster.start_timeout");
      }
    }
  }

 private:
  void on_signal(int number) {
    if (number == SIGCHLD) {
      for (pid_t pid = 0; (pid = waitpid(-1, nullptr, WNOHANG)) > 0;) connections_.has_ended(pid);
      return;
    }
    note_request(requests_, number, std::chrono::steady_clock::now());
    if (!leased_) throw Error(ErrorKind::stopped, std::string(unstarted_text));
  }

  // The ranks of this host and all other ranks agree on a step to stop after, and save; then the chief reports how the
  // job ended.
  void stop() {
    switch (stop_action(requests_, asked_, std::chrono::steady_clock::now())) {
      case StopAction::relay:
        log::warning("stopping the ranks of this host after this step");
        signal_descendants(getpid(), SIGUSR1);
        asked_.relayed = true;
        return;
      case StopAction::end_at_once:
        throw Error(ErrorKind::interrupted, "stopped at once");
      case StopAction::end_late:
        throw Error(ErrorKind::peer, format("the ranks of this host did not stop within {:g} s and were ended",
                                            std::chrono::duration<double>(time_to_stop(requests_, asked_)).count()));
      default:
        return;
    }
  }

  // Removes the copies of the run's state that the ranks have left in this host's memory: only ranks of the same
  // supervisor go on from them, and none will start here again. After an end that the chief has reported, none is left.
  void remove_copies() const {
    for (const std::string& copies : copies_of_launch(launch_)) {
      remove_memory_folder(copies);
      if (exists(copies)) {
        log::warning(format("the copies of the run's state in {} cannot be removed whole: remove this folder", copies));
        continue;
      }
      log::warning(format("the copies of the run's state in {} are removed, since the run has ended here", copies));
    }
  }

  void accept_connection() {
    const int socket = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0) return;
    const pid_t parent = getpid();
    const std::optional<pid_t> to_kill = connections_.make_space();
    if (to_kill.value_or(0) > 0) {
      kill(*to_kill, SIGKILL);
      refusals_.refused();
    }
    const pid_t child = to_kill ? fork() : -1;
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != parent) _exit(1);
      close(listener_);
      try {
        serve_connection({socket, name_, secret_, leased_, reports_[1]});
      } catch (const Error& error) {
        log::warning(format("a connection of the chief failed: {}", error.what()));
      }
      _exit(0);
    }
    close(socket);
    if (child > 0) connections_.add(child);
  }

  const Signals signals_;
  std::string name_, secret_;
  int listener_;
  std::array<int, 2> reports_{-1, -1};
  std::optional<std::chrono::steady_clock::time_point> patience_ends_;
  Connections connections_{max_connections};
  RefusalLog refusals_;
  bool leased_ = false;
  std::string launch_;  // the chief's supervisor
  StopRequests requests_;
  AskedRanks asked_;  // the ranks of this host
};

}  // namespace

int serve_as_agent(const TfConfig& config, const std::string& secret, const AgentPatience& patience) {
  const TfTask &own = config.tasks[config.own], &chief = config.tasks.front();
  forget_secret();  // commands that the agent runs must not know the secret
  Agent agent(own, secret, patience);
  log::info(format("{} is the launch agent of {} at {}:{}", own.name(), chief.name(), own.host, own.port));
  return agent.serve(chief.name());
}

}  // namespace trainctl
