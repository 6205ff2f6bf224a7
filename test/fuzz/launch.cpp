// Reads what starts ranks: environment variables, lists of hosts and messages of agents.
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <thread>

#include "parallel/launch/agent/channel.h"
#include "parallel/launch/hosts.h"
#include "parallel/launch/situation.h"
#include "parallel/launch/slurm/job.h"
#include "parallel/launch/tf_config/tf_config.h"
#include "test/fuzz/targets.h"

namespace trainctl::fuzz {
namespace {

using Side = AgentChannel::Side;
const std::string secret = "a secret that is long enough for this";

std::array<int, 2> connected_sockets() {
  std::array<int, 2> ends{-1, -1};
  expect(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0, "a fuzz test cannot make sockets");
  return ends;
}

// Sends the bytes and ends the sender's side of the connection.
void send_all(int socket, std::string_view bytes) {
  constexpr std::size_t most = 100'000;  // fits into the socket's buffer
  [[maybe_unused]] const ssize_t sent = send(socket, bytes.data(), std::min(bytes.size(), most), MSG_NOSIGNAL);
  shutdown(socket, SHUT_WR);
}

AgentChannel::Deadline soon() { return std::chrono::steady_clock::now() + std::chrono::seconds(5); }

}  // namespace

void fuzz_tf_config(std::string_view bytes) {
  const auto found = find_tf_config(Variables{{"TF_CONFIG", std::string(bytes)}});
  if (!found) return;
  expect(found->own < found->tasks.size(), "the own task is none of the tasks");
  found->hosts(2);
}

// Each line is a variable: NAME=VALUE.
void fuzz_slurm(std::string_view bytes) {
  Variables::Map values;
  for (std::size_t begin = 0; begin < bytes.size();) {
    const std::size_t end = std::min(bytes.find('\n', begin), bytes.size());
    const std::string_view line = bytes.substr(begin, end - begin);
    const std::size_t equals = std::min(line.find('='), line.size());
    values[std::string(line.substr(0, equals))] = line.substr(std::min(equals + 1, line.size()));
    begin = end + 1;
  }
  read_job_state(bytes);
  const Variables variables(std::move(values));
  for (const MpiLibrary mpi : {MpiLibrary::openmpi4, MpiLibrary::mpich}) {
    require_known_launcher(find_situation(variables, mpi), variables, mpi);
  }
  if (const auto job = find_slurm_job(variables)) expect(job->nodes() >= 0, "a job has a negative number of nodes");
}

void fuzz_slurm_names(std::string_view bytes) {
  for (const std::string& name : expand_names(bytes)) is_host_name(name);
}

void fuzz_slurm_counts(std::string_view bytes) {
  if (const auto counts = expand_counts(bytes)) {
    for (const int count : *counts) expect(count > 0 && count <= max_slots, "a number of slots is out of range");
  }
}

void fuzz_hosts(std::string_view bytes) { expect(total_slots(parse_hosts(bytes)) > 0, "hosts have no slots"); }

void fuzz_hostfile(std::string_view bytes) {
  expect(total_slots(parse_hostfile(bytes, "hosts")) > 0, "hosts have no slots");
}

// The bytes come from a peer that does not know the secret, once for an agent and once for a chief.
void fuzz_agent_handshake(std::string_view bytes) {
  for (const Side side : {Side::agent, Side::chief}) {
    const std::array<int, 2> ends = connected_sockets();
    send_all(ends[1], bytes);
    bool proven = false;
    try {
      AgentChannel channel(ends[0], side, "worker 1", secret, soon());
      proven = true;
    } catch (const Error& error) {
      close(ends[1]);
      if (error.kind() != ErrorKind::peer) throw;
      continue;
    }
    expect(!proven, "a peer without the secret was accepted");
  }
}

// The peer knows the secret. It sends a message with the first bytes, and the rest as it is.
void fuzz_agent_messages(std::string_view bytes) {
  const std::array<int, 2> ends = connected_sockets();
  std::optional<AgentChannel> chief;
  std::thread peer([&] { chief.emplace(ends[1], Side::chief, "worker 1", secret, soon()); });
  std::optional<AgentChannel> agent;
  agent.emplace(ends[0], Side::agent, "worker 1", secret, soon());
  peer.join();
  const std::string_view text = bytes.substr(0, bytes.empty() ? 0 : static_cast<unsigned char>(bytes[0]));
  chief->send(MessageKind::command, text);
  send_all(chief->descriptor(), bytes.substr(text.size()));
  const std::optional<Message> first = agent->receive();
  expect(first && first->text == text && first->kind == MessageKind::command, "a message has changed");
  expect(!agent->receive(), "a message without the secret was accepted");
}

}  // namespace trainctl::fuzz
