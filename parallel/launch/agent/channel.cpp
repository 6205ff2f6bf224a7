// The handshake, and messages with their authentication codes.
#include "parallel/launch/agent/channel.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/hmac.h"

namespace trainctl {
namespace {

constexpr std::string_view greeting = "trainctl agent 3\n";
constexpr std::string_view refusal = "your proof is not of my secret.\n";  // must have the length of a proof
constexpr std::size_t nonce_bytes = 32, code_bytes = 32, head_bytes = 5, max_bytes = 1 << 20;
constexpr AgentChannel::Deadline never = AgentChannel::Deadline::max();

int milliseconds_to(AgentChannel::Deadline deadline) {
  if (deadline == never) return -1;
  const auto left = deadline - std::chrono::steady_clock::now();
  return static_cast<int>(
      std::clamp<std::int64_t>(std::chrono::ceil<std::chrono::milliseconds>(left).count(), 0, 3'600'000));
}

// Reads `count` bytes; fewer if the connection ends or the deadline passes.
std::string read_bytes(int socket, std::size_t count, AgentChannel::Deadline deadline) {
  std::string bytes(count, '\0');
  std::size_t had = 0;
  while (had < count) {
    pollfd ready{socket, POLLIN, 0};
    const int events = poll(&ready, 1, milliseconds_to(deadline));
    if (events < 0 && errno == EINTR) continue;
    if (events <= 0) break;
    const ssize_t got = recv(socket, bytes.data() + had, count - had, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    had += static_cast<std::size_t>(got);
  }
  bytes.resize(had);
  return bytes;
}

bool write_bytes(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

std::string big_endian(std::uint64_t value, std::size_t bytes) {
  std::string text;
  for (std::size_t i = bytes; i-- > 0;) text += static_cast<char>(value >> (8 * i) & 0xff);
  return text;
}

// Makes the kernel detect a vanished peer within a minute.
void keep_alive(int socket) {
  const auto set = [socket](int level, int name, int value) { setsockopt(socket, level, name, &value, sizeof value); };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 20);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 10);
  set(IPPROTO_TCP, TCP_KEEPCNT, 4);
  set(IPPROTO_TCP, TCP_NODELAY, 1);
}

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

Addresses addresses_of(const std::string& host, int port) {
  addrinfo wanted{};
  wanted.ai_family = AF_INET;
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &wanted, &found) != 0) found = nullptr;
  return {found, &freeaddrinfo};
}

}  // namespace

AgentChannel::AgentChannel(int socket, Side side, const std::string& agent, const std::string& secret,
                           Deadline deadline)
    : socket_(socket), side_(side) {
  keep_alive(socket_);
  try {
    shake_hands(agent, secret, deadline);
  } catch (...) {
    close(socket_);
    throw;
  }
}

AgentChannel::~AgentChannel() {
  if (socket_ >= 0) close(socket_);
}

AgentChannel::AgentChannel(AgentChannel&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)),
      side_(other.side_),
      key_(std::move(other.key_)),
      sent_(other.sent_),
      received_(other.received_) {}

// The agent sends its proof last. A peer that does not know the secret therefore learns only that its own proof is
// wrong.
void AgentChannel::shake_hands(const std::string& agent, const std::string& secret, Deadline deadline) {
  static_assert(refusal.size() == code_bytes);
  const std::string own = random_bytes(nonce_bytes);
  const Error unproven(ErrorKind::peer, "the other side did not prove that it knows the secret");
  const WrongSecret wrong(ErrorKind::peer, format("the other side has another secret, or is not {}", agent),
                          "give all tasks the same TRAINCTL_SECRET, or TRAINCTL_SECRET_FILE, and the same cluster");
  if (!write_bytes(socket_, std::string(greeting) + own)) throw unproven;
  const std::string hello = read_bytes(socket_, greeting.size() + nonce_bytes, deadline);
  if (hello.size() != greeting.size() + nonce_bytes || !hello.starts_with(greeting)) throw unproven;
  const std::string other = hello.substr(greeting.size());
  if (other == own) throw unproven;  // the peer echoes the received bytes
  const std::string both = side_ == Side::chief ? own + other : other + own;
  const auto derived = [&](const std::string& purpose) {  // zero bytes separate the parts
    return hmac_sha256(secret, purpose + '\0' + agent + '\0' + both);
  };
  const std::string of_chief = derived("proof of the chief"), of_agent = derived("proof of the agent");
  if (side_ == Side::chief && !write_bytes(socket_, of_chief)) throw unproven;
  const std::string proof = read_bytes(socket_, code_bytes, deadline);
  if (proof.size() != code_bytes) throw unproven;
  if (!equal_in_constant_time(proof, side_ == Side::chief ? of_agent : of_chief)) {
    if (side_ == Side::agent) [[maybe_unused]]
      const bool was_sent = write_bytes(socket_, refusal);
    throw wrong;
  }
  if (side_ == Side::agent && !write_bytes(socket_, of_agent)) throw unproven;
  key_ = derived("key");
}

std::string AgentChannel::code(Side from, std::uint64_t number, std::string_view message) const {
  return hmac_sha256(key_, (from == Side::chief ? "c" : "a") + big_endian(number, 8) + std::string(message));
}

bool AgentChannel::send(MessageKind kind, std::string_view text) {
  require(text.size() <= max_bytes, "a message of an agent is larger than 1 MiB");
  const std::string message = static_cast<char>(kind) + big_endian(text.size(), 4) + std::string(text);
  return write_bytes(socket_, message + code(side_, sent_++, message));
}

std::optional<Message> AgentChannel::receive() {
  const std::string head = read_bytes(socket_, head_bytes, never);
  if (head.size() != head_bytes) return {};
  std::size_t size = 0;
  for (std::size_t i = 1; i < head_bytes; ++i) size = size << 8 | static_cast<unsigned char>(head[i]);
  const Error forged(ErrorKind::peer, "received a message that the other side did not send");
  if (size > max_bytes) throw forged;
  const std::string rest = read_bytes(socket_, size + code_bytes, never);
  if (rest.size() != size + code_bytes) return {};
  const Side from = side_ == Side::chief ? Side::agent : Side::chief;
  const std::string text = rest.substr(0, size);
  if (!equal_in_constant_time(rest.substr(size), code(from, received_++, head + text))) throw forged;
  return Message{static_cast<MessageKind>(head[0]), text};
}

int listen_at(const std::string& host, int port) {
  const Addresses addresses = addresses_of(host, port);
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int yes = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  const bool good =
      addresses && bind(listener, addresses->ai_addr, addresses->ai_addrlen) == 0 && listen(listener, 64) == 0;
  if (good) return listener;
  const std::string why = addresses ? std::generic_category().message(errno) : "the host name has no address";
  close(listener);
  throw Error(ErrorKind::peer, format("this task cannot listen on {}:{}: {}", host, port, why),
              "TF_CONFIG must name an address of this host and a free port");
}

int connect_to(const std::string& host, int port, AgentChannel::Deadline deadline) {
  do {
    if (const Addresses addresses = addresses_of(host, port)) {
      const int connection = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      const timeval patience{5, 0}, for_ever{};
      setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
      if (connect(connection, addresses->ai_addr, addresses->ai_addrlen) == 0) {
        setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &for_ever, sizeof for_ever);
        return connection;
      }
      close(connection);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  } while (std::chrono::steady_clock::now() < deadline);
  return -1;
}

}  // namespace trainctl
