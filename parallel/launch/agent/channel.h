// An authenticated connection between the chief of a job and a launch agent. Each side sends 32 random bytes. With
// these and the agent's name it proves that it knows the secret, which is never sent. The key of the connection is
// derived from the bytes, the name and the secret. Every message carries an authentication code with that key over its
// direction, number and content. Therefore a peer without the secret cannot forge, change, repeat or reorder messages,
// or connect the chief to another agent than the intended one. Messages are not encrypted.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/error.h"

namespace trainctl {

// The kind of a message.
enum class MessageKind : char {
  lease = 'l',    // chief, with the name of the supervisor: the job runs while this connection is open
  command = 'x',  // chief: a command to run in a shell
  input = 'i',    // chief: standard input of the command; no text: its end
  output = 'o',   // agent: standard output of the command
  errors = 'r',   // agent: standard error of the command
  end = 'e',      // exit code of the job (from the chief) or of the command (from the agent)
};

struct Message {
  MessageKind kind{};
  std::string text;
};

// Thrown if the other side has another secret, so that a new connection would fail, too.
class WrongSecret : public Error {
 public:
  using Error::Error;
};

class AgentChannel {
 public:
  enum class Side { chief, agent };
  using Deadline = std::chrono::steady_clock::time_point;

  // Owns a connected socket. `agent`: the name of the agent's task, such as "worker 1". Throws WrongSecret if the two
  // sides have different secrets or expect different agents, and another Error{peer} if the other side does not prove
  // by the deadline that it knows the secret. In the latter case a new connection may succeed.
  AgentChannel(int socket, Side side, const std::string& agent, const std::string& secret, Deadline deadline);
  ~AgentChannel();
  AgentChannel(AgentChannel&& other) noexcept;
  AgentChannel(const AgentChannel&) = delete;
  AgentChannel& operator=(const AgentChannel&) = delete;

  int descriptor() const { return socket_; }

  // Sends a message; returns false if the connection is lost.
  bool send(MessageKind kind, std::string_view text);
  // Waits for a message; returns an empty optional if the connection has ended. Throws Error{peer} for a message that
  // the other side did not send.
  std::optional<Message> receive();

 private:
  void shake_hands(const std::string& agent, const std::string& secret, Deadline deadline);
  std::string code(Side from, std::uint64_t number, std::string_view message) const;

  int socket_ = -1;
  Side side_;
  std::string key_;
  std::uint64_t sent_ = 0, received_ = 0;
};

// Returns a socket that listens on the port at the address of `host`, a name of this host. Throws Error{peer} on
// failure.
int listen_at(const std::string& host, int port);

// Returns the socket of a connection, or -1 if no connection is made by the deadline.
int connect_to(const std::string& host, int port, AgentChannel::Deadline deadline);

}  // namespace trainctl
