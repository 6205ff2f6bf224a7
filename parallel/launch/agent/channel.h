// An authenticated connection between the chief of a job and a launch agent.
//
// Each side sends 32 random bytes and proves with them and with the agent's name that it knows the secret, which itself
// is never sent. The key of the connection follows from all three; every message has a code of that key over its
// direction, number and content. So nobody without the secret can speak, change, repeat or reorder anything, or join
// the chief to another agent than the one that it means; what is said is not hidden.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/error.h"

namespace trainctl {

// A message and what it is about.
enum class MessageKind : char {
  lease = 'l',    // chief: I run the job as long as this connection lasts
  command = 'x',  // chief: run this by a shell
  output = 'o',   // agent: of the command
  errors = 'r',   // agent: likewise
  end = 'e',      // chief: the job, agent: the command has ended with this exit code
};

struct Message {
  MessageKind kind{};
  std::string text;
};

// The other side knows another secret, which a new connection would not mend.
class WrongSecret : public Error {
 public:
  using Error::Error;
};

class AgentChannel {
 public:
  enum class Side { chief, agent };
  using Deadline = std::chrono::steady_clock::time_point;

  // Takes a connected socket. `agent` is the name of the agent's task, such as "worker 1". Throws WrongSecret if the
  // two sides know different secrets or mean different agents, and another Error{peer} if the other side does not prove
  // by the deadline that it knows the secret: then a new connection may go well.
  AgentChannel(int socket, Side side, const std::string& agent, const std::string& secret, Deadline deadline);
  ~AgentChannel();
  AgentChannel(AgentChannel&& other) noexcept;
  AgentChannel(const AgentChannel&) = delete;
  AgentChannel& operator=(const AgentChannel&) = delete;

  int descriptor() const { return socket_; }

  // False where the connection is lost.
  bool send(MessageKind kind, std::string_view text);
  // Waits for a message. Nothing where the connection has ended. Throws Error{peer} for a message that is not the other
  // side's.
  std::optional<Message> receive();

 private:
  void shake_hands(const std::string& agent, const std::string& secret, Deadline deadline);
  std::string code(Side from, std::uint64_t number, std::string_view message) const;

  int socket_ = -1;
  Side side_;
  std::string key_;
  std::uint64_t sent_ = 0, received_ = 0;
};

// A listening socket on the port, at the address that a name of this host stands for. Throws Error{peer} where that is
// not to be had.
int listen_at(const std::string& host, int port);

// A connection, or -1 where there is none by the deadline.
int connect_to(const std::string& host, int port, AgentChannel::Deadline deadline);

}  // namespace trainctl
