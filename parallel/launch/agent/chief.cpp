// Speaking to launch agents.
#include "parallel/launch/agent/chief.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/log.h"
#include "core/base/output.h"

namespace trainctl {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds answer_time(10);

AgentChannel open_channel(int socket, const std::string& secret) {
  return AgentChannel(socket, AgentChannel::Side::chief, secret, Clock::now() + answer_time);
}

}  // namespace

Leases::Leases(const TfConfig& config, const std::string& secret, std::chrono::milliseconds patience) {
  const auto deadline = patience.count() > 0 ? Clock::now() + patience : Clock::now() + std::chrono::hours(24 * 365);
  std::string missing;
  for (std::size_t i = 0; i < config.tasks.size(); ++i) {
    if (i == config.own) continue;
    const TfTask& task = config.tasks[i];
    const std::string name = format("{} ({}:{})", task.name(), task.host, task.port);
    log::debug("looking for the launch agent of " + name);
    const int socket = connect_to(task.host, task.port, deadline);
    if (socket < 0) {
      missing += (missing.empty() ? "" : ", ") + name;
      continue;
    }
    try {
      agents_.push_back(open_channel(socket, secret));
      agents_.back().send(MessageKind::lease, "");
      if (!agents_.back().receive()) throw Error(ErrorKind::peer, "the launch agent has closed the connection");
    } catch (const Error& error) {
      throw Error(error.kind(), format("{}: {}", name, error.what()));
    }
  }
  if (missing.empty()) return;
  throw Error(ErrorKind::peer, format("no launch agent answers for {}", missing),
              "start the same command with its TF_CONFIG there; see cluster.timeout");
}

void Leases::end(int exit_code) {
  for (AgentChannel& agent : agents_) agent.send(MessageKind::end, std::to_string(exit_code));
}

int remote_shell(const TfConfig& config, const std::string& secret, const std::string& host,
                 const std::string& command) {
  const auto task = std::find_if(config.tasks.begin(), config.tasks.end(), [&](const TfTask& each) {
    return each.host == host && !each.is(config.tasks[config.own]);
  });
  if (task == config.tasks.end()) throw Error(ErrorKind::config, format("TF_CONFIG has no task on {}", host));
  const int socket = connect_to(task->host, task->port, Clock::now() + answer_time);
  if (socket < 0) throw Error(ErrorKind::peer, format("no launch agent answers at {}:{}", task->host, task->port));
  AgentChannel channel = open_channel(socket, secret);
  channel.send(MessageKind::command, command);
  while (const std::optional<Message> message = channel.receive()) {
    if (message->kind == MessageKind::end) return std::atoi(message->text.c_str());
    write_all(message->kind == MessageKind::output ? STDOUT_FILENO : STDERR_FILENO, message->text);
  }
  return 255;
}

}  // namespace trainctl
