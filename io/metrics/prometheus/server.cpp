// Serves metrics with cpp-httplib, which parses the requests and writes the answers, and adds limits that cpp-httplib
// does not have.
#include "io/metrics/prometheus/server.h"

#include <httplib.h>
#include <poll.h>
#include <strings.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <exception>
#include <list>
#include <thread>
#include <utility>

#include "core/base/blocked_signals.h"
#include "io/metrics/prometheus/listener.h"

namespace trainctl {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t max_connections = 16;  // open connections; if there are more, the oldest is closed
constexpr int max_accepted_per_second = 50;
constexpr std::chrono::seconds connection_time(5);
constexpr std::size_t max_head_bytes = 8192;      // size of the head of a request
constexpr std::size_t max_drained_bytes = 65536;  // bytes that a client may send after the head of its request

constexpr const char* plain_text = "text/plain; charset=utf-8";
constexpr std::string_view too_long =
    "HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 24\r\n"
    "Connection: close\r\n\r\nthe request is too long\n";

// Waits for an event of the socket until `end`; returns whether the event occurred.
bool wait_for(int socket, short event, Clock::time_point end) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
    pollfd polled{socket, event, 0};
    const int found = left.count() > 0 ? poll(&polled, 1, static_cast<int>(left.count())) : 0;
    if (found >= 0 || errno != EINTR) return found > 0;
  }
}

// A connection with one request and its answer. Every wait for the client ends when the connection's time is over or
// another thread calls cut_off().
class Connection final : public httplib::Stream {
 public:
  // Takes ownership of the socket.
  explicit Connection(int socket) : socket_(socket) {}
  ~Connection() override { close(socket_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void cut_off() const { shutdown(socket_, SHUT_RDWR); }

  // Reads the head of the request and removes its ranges. Returns false if it does not arrive in time or is too long.
  bool read_head() {
    std::array<char, 2048> bytes{};
    constexpr std::string_view end = "\r\n\r\n";
    while (head_.find(end) == std::string::npos) {
      if (is_too_long()) return false;
      const ssize_t got = receive(bytes);
      if (got <= 0) return false;
      head_.append(bytes.data(), static_cast<std::size_t>(got));
    }
    head_.resize(head_.find(end) + end.size());
    drop_ranges();
    return true;
  }
  bool is_too_long() const { return head_.size() > max_head_bytes; }

  // Waits until the client closes the connection, too: if it still sends when the socket is closed, it may lose the
  // answer.
  void drain() {
    shutdown(socket_, SHUT_WR);
    std::array<char, 2048> bytes{};
    std::size_t drained = 0;
    for (ssize_t got = 0; drained <= max_drained_bytes && (got = receive(bytes)) > 0;) {
      drained += static_cast<std::size_t>(got);
    }
  }

  // Reads from the head only: requests that are answered have no body.
  ssize_t read(char* to, std::size_t size) override {
    const std::size_t count = std::min(size, head_.size() - taken_);
    std::copy_n(head_.data() + taken_, count, to);
    taken_ += count;
    return static_cast<ssize_t>(count);
  }
  // Writes all bytes, or returns -1.
  ssize_t write(const char* from, std::size_t size) override {
    for (std::size_t sent = 0; sent < size;) {
      if (!waits_for(POLLOUT)) return -1;
      const ssize_t count = send(socket_, from + sent, size - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (count < 0 && errno != EAGAIN && errno != EINTR) return -1;
      sent += static_cast<std::size_t>(std::max<ssize_t>(count, 0));
    }
    return static_cast<ssize_t>(size);
  }
  using httplib::Stream::write;
  bool is_readable() const override { return true; }
  bool is_writable() const override { return waits_for(POLLOUT); }
  void get_remote_ip_and_port(std::string&, int&) const override {}  // the addresses are not used
  void get_local_ip_and_port(std::string&, int&) const {}            // NOLINT: since version 0.11 of the library
  socket_t socket() const override { return socket_; }

 private:
  bool waits_for(short event) const { return wait_for(socket_, event, end_); }
  // Returns the number of received bytes; 0 or less if no more bytes will arrive.
  ssize_t receive(std::array<char, 2048>& bytes) const {
    ssize_t got = -1;
    do {
      if (!waits_for(POLLIN)) return -1;
      got = recv(socket_, bytes.data(), bytes.size(), MSG_DONTWAIT);
    } while (got < 0 && (errno == EAGAIN || errno == EINTR));
    return got;
  }

  // Removes headers that request a range of the answer: ranges are not supported, and cpp-httplib would match a list of
  // ranges with a regular expression, for which a thread's stack may be too small.
  void drop_ranges() {
    constexpr std::string_view name = "range:";
    for (std::size_t line = 0; line < head_.size(); line = head_.find('\n', line) + 1) {
      while (strncasecmp(head_.data() + line, name.data(), name.size()) == 0) {
        head_.erase(line, head_.find('\n', line) + 1 - line);
      }
    }
  }

  int socket_;
  Clock::time_point end_ = Clock::now() + connection_time;
  std::string head_;
  std::size_t taken_ = 0;  // bytes of the head that cpp-httplib has read
};

// Uses cpp-httplib's server only to parse a request and write the answer.
class Answers final : public httplib::Server {
 public:
  explicit Answers(std::function<std::string()> text) {
    set_pre_routing_handler([text = std::move(text)](const httplib::Request& request, httplib::Response& response) {
      if (request.path != "/metrics") {
        response.status = 404;
        response.set_content("metrics are at /metrics\n", plain_text);
      } else if (request.method != "GET") {
        response.status = 405;
        response.set_header("Allow", "GET");
        response.set_content("/metrics is read by GET\n", plain_text);
      } else {
        response.set_content(text(), "text/plain; version=0.0.4; charset=utf-8");
      }
      return HandlerResponse::Handled;
    });
    set_error_handler([](const httplib::Request&, httplib::Response& response) {
      if (response.status == 400) response.set_content("this is not an HTTP/1.1 request\n", plain_text);
    });
  }

  void answer(Connection& connection) {
    bool is_closed = false;
    if (connection.read_head()) {
      process_request(connection, true, is_closed, nullptr);
    } else if (connection.is_too_long()) {
      connection.write(too_long.data(), too_long.size());
    } else {
      return;
    }
    connection.drain();
  }
};

// A connection with the thread that answers it.
class Client {
 public:
  Client(int socket, Answers& answers) : connection_(socket) {
    thread_ = std::thread([this, &answers] {
      try {
        answers.answer(connection_);
      } catch (const std::exception&) {  // if an answer needs too much memory, training may still have enough
      }
      connection_.cut_off();
      is_done_ = true;
    });
  }
  ~Client() {
    connection_.cut_off();
    if (thread_.joinable()) thread_.join();
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  bool is_done() const { return is_done_; }

 private:
  Connection connection_;
  std::atomic<bool> is_done_{false};
  std::thread thread_;
};

}  // namespace

class MetricsServer::Server {
 public:
  Server(int listener, std::function<std::string()> text) : listener_(listener), answers_(std::move(text)) {
    const BlockedSignals blocked;
    thread_ = std::thread([this] { serve(); });
  }
  ~Server() {
    ends_ = true;
    shutdown(listener_, SHUT_RDWR);  // wakes the thread
    thread_.join();
    close(listener_);
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

 private:
  void serve() {
    std::list<Client> clients;  // the oldest first
    Clock::time_point second;   // end of the present second, in which `left` more connections are accepted
    int left = 0;
    for (;;) {
      const int socket = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      const int error = errno;
      if (socket >= 0) serve(clients, socket);
      if (ends_) return;
      if (Clock::now() >= second) {
        second = Clock::now() + std::chrono::seconds(1);
        left = max_accepted_per_second;
      }
      if (socket >= 0) {
        --left;
      } else if (error != EINTR && error != ECONNABORTED) {
        left = 0;  // for example, no descriptors are left: tries again later
      }
      if (left == 0) wait_for(listener_, 0, second);
    }
  }

  void serve(std::list<Client>& clients, int socket) {
    std::erase_if(clients, [](const Client& client) { return client.is_done(); });
    if (clients.size() == max_connections) clients.pop_front();
    try {
      clients.emplace_back(socket, answers_);
    } catch (const std::exception&) {  // for example, no thread can be started: the connection is closed
    }
  }

  int listener_;
  Answers answers_;
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

MetricsServer::MetricsServer(const Located<ListenAddress>& address, std::function<std::string()> text)
    : server_(std::make_unique<Server>(listen_on(address), std::move(text))) {}

MetricsServer::~MetricsServer() = default;

void answer_connection(int socket, std::function<std::string()> text) {
  Connection connection(socket);
  Answers(std::move(text)).answer(connection);
}

}  // namespace trainctl
