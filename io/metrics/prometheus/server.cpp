// Listening, and the loop over connections.
#include "io/metrics/prometheus/server.h"

#include <netdb.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <exception>
#include <list>
#include <system_error>
#include <utility>
#include <vector>

#include "core/base/blocked_signals.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/format.h"
#include "io/metrics/prometheus/connection.h"

namespace trainctl {
namespace {

constexpr std::size_t most_connections = 16;  // at once; the oldest gives way
constexpr int most_accepted = 50;             // in a second
constexpr double connection_seconds = 5;

[[noreturn]] void throw_cannot_listen(const Placed<ListenAddress>& address, int error) {
  const auto& [host, port] = address.value;
  std::string why =
      format("port {} of {} cannot be listened on: {}", port, host, std::generic_category().message(error));
  std::string remedy = "state another one (--set log.prometheus=PORT)";
  if (error == EADDRINUSE) {
    why = format("port {} of {} is in use", port, host);
    remedy = "end what listens there, perhaps another run, or state another port (--set log.prometheus=PORT, or none)";
  } else if (error == EADDRNOTAVAIL) {
    why = format("{} is no address of this host, where rank 0 runs", host);
    remedy = "state one of its addresses, or 0.0.0.0 for all";
  } else if (error == EACCES) {
    remedy = "state a port from 1024 on (--set log.prometheus=PORT)";
  }
  throw Error(ErrorKind::config, address.place, "log.prometheus: " + why, remedy);
}

int listen_on(const Placed<ListenAddress>& address) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(address.value.host.c_str(), std::to_string(address.value.port).c_str(), &hints, &found) != 0) {
    throw_cannot_listen(address, EADDRNOTAVAIL);
  }
  const int listener = socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  const int on = 1;
  // Connections of a run before, that are still winding up, are no reason to refuse.
  bool listens = listener >= 0 && setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0;
  // Not by bind(), which would keep a socket for all addresses to the network of the ranks (parallel/launch/preload).
  listens = listens && syscall(SYS_bind, listener, found->ai_addr, found->ai_addrlen) == 0;
  listens = listens && listen(listener, static_cast<int>(most_connections)) == 0;
  const int error = errno;
  freeaddrinfo(found);
  if (listens) return listener;
  if (listener >= 0) close(listener);
  throw_cannot_listen(address, error);
}

// How many connections may still be accepted in this second.
class AcceptRate {
 public:
  int left(double now) {
    if (now >= next_) {
      left_ = most_accepted;
      next_ = now + 1;
    }
    return left_;
  }
  void take() { --left_; }
  void take_all() { left_ = 0; }
  double next() const { return next_; }

 private:
  int left_ = 0;
  double next_ = 0;
};

void accept_all(int listener, AcceptRate& rate, std::list<HttpConnection>& connections) {
  const double now = seconds_now();
  while (rate.left(now) > 0) {
    const int socket = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (socket < 0) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno != EAGAIN && errno != EWOULDBLOCK) rate.take_all();  // no descriptors left, say: later
      return;
    }
    rate.take();
    if (connections.size() == most_connections) connections.pop_front();
    connections.emplace_back(socket, now + connection_seconds);
  }
}

// As HttpConnection::advance(). Memory that is short for an answer may be enough for training.
bool advances(HttpConnection& connection, const std::function<std::string()>& text) {
  try {
    return connection.advance(text);
  } catch (const std::exception&) {
    return false;
  }
}

int milliseconds_until(double time) {
  return std::isinf(time) ? -1 : std::max(0, static_cast<int>(std::ceil(1000 * (time - seconds_now()))));
}

}  // namespace

MetricsServer::MetricsServer(const Placed<ListenAddress>& address, std::function<std::string()> text)
    : text_(std::move(text)), listener_(listen_on(address)), stop_(eventfd(0, EFD_CLOEXEC)) {
  if (stop_ < 0) {
    const int error = errno;
    close(listener_);
    throw Error(ErrorKind::resource, "log.prometheus: " + std::generic_category().message(error));
  }
  const BlockedSignals blocked;
  thread_ = std::thread([this] { serve(); });
}

MetricsServer::~MetricsServer() {
  eventfd_write(stop_, 1);
  thread_.join();
  close(stop_);
  close(listener_);
}

void MetricsServer::serve() {
  std::list<HttpConnection> connections;  // the oldest first
  AcceptRate rate;
  std::vector<pollfd> polled;
  for (;;) {
    const bool accepts = rate.left(seconds_now()) > 0;
    double wake = accepts ? INFINITY : rate.next();
    polled = {{stop_, POLLIN, 0}, {accepts ? listener_ : -1, POLLIN, 0}};
    for (const HttpConnection& connection : connections) {
      polled.push_back({connection.socket(), connection.wanted_events(), 0});
      wake = std::min(wake, connection.deadline());
    }
    poll(polled.data(), polled.size(), milliseconds_until(wake));
    if (polled[0].revents != 0) return;
    const double now = seconds_now();
    std::size_t at = 2;
    std::erase_if(connections, [&](HttpConnection& connection) {
      const bool ready = polled[at++].revents != 0;
      return now >= connection.deadline() || (ready && !advances(connection, text_));
    });
    if (polled[1].revents != 0) accept_all(listener_, rate, connections);
  }
}

}  // namespace trainctl
