// Communicates with launch agents.
#include "parallel/launch/agent/chief.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <thread>
#include <utility>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/log.h"
#include "core/base/output.h"
#include "parallel/launch/host/process.h"
#include "parallel/launch/ranks/stop.h"

namespace trainctl {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds answer_time(10), remote_shell_time(60);

std::string address_of(const TfTask& task) { return format("{} ({}:{})", task.name(), task.host, task.port); }

// Connects to the agent of a task and authenticates it. Connections of clients without the secret may keep an agent
// busy: the function tries again until the deadline, and logs the first failure. Throws Error{peer} with the reason of
// the last failure; if the secrets differ, throws it immediately. Returns an empty optional if no process listens
// there.
std::optional<AgentChannel> open_channel(const TfTask& task, const std::string& secret, Clock::time_point deadline) {
  constexpr std::chrono::milliseconds pause(200);
  for (int tries = 1;; ++tries) {
    const int socket = connect_to(task.host, task.port, deadline);
    if (socket < 0) return {};
    try {
      const auto answered = std::min(deadline, Clock::now() + answer_time);
      return AgentChannel(socket, AgentChannel::Side::chief, task.name(), secret, answered);
    } catch (const WrongSecret& error) {
      throw Error(error.kind(), format("{}: {}", address_of(task), error.what()));
    } catch (const Error& error) {
      if (Clock::now() + pause > deadline) {
        throw Error(
            error.kind(),
            format("{}: {}, in {} {}", address_of(task), error.what(), tries, tries == 1 ? "try" : "tries"),
            "another program may listen there, or other clients may use up the agent's connections: see its log");
      }
      if (tries == 1) log::warning(format("{}: {}; trying again", address_of(task), error.what()));
    }
    std::this_thread::sleep_for(pause);
  }
}

// Sends a piece of standard input, or its end. Returns false at the end.
bool send_input(AgentChannel& channel) {
  std::array<char, 65536> buffer{};
  const ssize_t count = read(STDIN_FILENO, buffer.data(), buffer.size());
  if (count < 0 && (errno == EINTR || errno == EAGAIN)) return true;
  channel.send(MessageKind::input, {buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0))});
  return count > 0;
}

}  // namespace

Leases::Leases(const TfConfig& config, const std::string& secret, std::chrono::milliseconds patience,
               const std::string& launch) {
  const auto deadline = patience.count() > 0 ? Clock::now() + patience : Clock::now() + std::chrono::hours(24 * 365);
  std::string missing;
  for (std::size_t i = 0; i < config.tasks.size(); ++i) {
    if (i == config.own) continue;
    const TfTask& task = config.tasks[i];
    log::debug("looking for the launch agent of " + address_of(task));
    std::optional<AgentChannel> agent = open_channel(task, secret, deadline);
    if (!agent) {
      missing += (missing.empty() ? "" : ", ") + address_of(task);
      continue;
    }
    agents_.push_back(std::move(*agent));
    agents_.back().send(MessageKind::lease, launch);
    if (!agents_.back().receive()) {
      throw Error(ErrorKind::peer, format("{}: the launch agent has closed the connection", address_of(task)));
    }
  }
  if (missing.empty()) return;
  throw Error(ErrorKind::peer, format("no launch agent answers for {}", missing),
              "start the same command with its TF_CONFIG there; see cluster.start_timeout");
}

void Leases::end(int exit_code) {
  for (AgentChannel& agent : agents_) agent.send(MessageKind::end, std::to_string(exit_code));
}

int remote_shell(const TfConfig& config, const std::string& secret, const std::string& host,
                 const std::string& command) {
  ignore_requests();  // the launcher ends this process after the ranks have saved
  const auto task = std::find_if(config.tasks.begin(), config.tasks.end(), [&](const TfTask& each) {
    return each.host == host && !each.is(config.tasks[config.own]);
  });
  if (task == config.tasks.end()) throw Error(ErrorKind::config, format("TF_CONFIG has no task on {}", host));
  std::optional<AgentChannel> channel = open_channel(*task, secret, Clock::now() + remote_shell_time);
  if (!channel) throw Error(ErrorKind::peer, format("no launch agent answers at {}:{}", task->host, task->port));
  channel->send(MessageKind::command, command);
  for (bool has_input = true;;) {
    std::array<pollfd, 2> sources = {{{channel->descriptor(), POLLIN, 0}, {has_input ? STDIN_FILENO : -1, POLLIN, 0}}};
    if (poll(sources.data(), sources.size(), -1) < 0 && errno != EINTR) return 255;
    if (sources[1].revents != 0) has_input = send_input(*channel);
    if (sources[0].revents == 0) continue;
    const std::optional<Message> message = channel->receive();
    if (!message) return 255;
    if (message->kind == MessageKind::end) return std::atoi(message->text.c_str());
    write_all(message->kind == MessageKind::output ? STDOUT_FILENO : STDERR_FILENO, message->text);
  }
}

std::vector<std::string> remote_shell_words() { return {own_path(), remote_shell_command, "--"}; }

}  // namespace trainctl
