// Running a command with its output on a channel.
#include "parallel/launch/agent/agent_command.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <string_view>

#include "parallel/launch/process.h"

namespace trainctl {
namespace {

// Sends all that is there; false where the connection is lost.
bool pass_on(int pipe, MessageKind kind, AgentChannel& channel) {
  std::array<char, 65536> buffer{};
  ssize_t count = 0;
  while ((count = read(pipe, buffer.data(), buffer.size())) > 0) {
    if (!channel.send(kind, std::string_view(buffer.data(), static_cast<std::size_t>(count)))) return false;
  }
  return true;
}

}  // namespace

void run_for_chief(AgentChannel& channel, const std::string& command) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  // A request to stop that reaches every process of this host leaves the shell where it is: the ranks save first.
  const ChildProcess process = start_process({"/bin/sh", "-c", "trap '' HUP INT TERM; " + command}, {});
  for (const int pipe : {process.output, process.errors, process.messages}) fcntl(pipe, F_SETFL, O_NONBLOCK);
  const auto pass_all = [&] {
    return pass_on(process.output, MessageKind::output, channel) &&
           pass_on(process.errors, MessageKind::errors, channel);
  };
  for (;;) {
    constexpr int look_milliseconds = 100;  // at whether the command has ended
    std::array<pollfd, 3> sources = {
        {{channel.descriptor(), POLLIN, 0}, {process.output, POLLIN, 0}, {process.errors, POLLIN, 0}}};
    poll(sources.data(), sources.size(), look_milliseconds);
    int status = 0;
    const bool ended = waitpid(process.pid, &status, WNOHANG) == process.pid;
    if (!pass_all() || sources[0].revents != 0) break;  // the chief has no more to say than that it goes
    if (!ended) continue;
    channel.send(MessageKind::end, std::to_string(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status)));
    break;
  }
  kill_children();
}

}  // namespace trainctl
