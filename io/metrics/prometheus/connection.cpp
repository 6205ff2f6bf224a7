// HTTP/1.1 as far as a scrape needs it: a connection is closed behind its answer.
#include "io/metrics/prometheus/connection.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "core/base/format.h"

namespace trainctl {
namespace {

constexpr std::size_t longest_request = 8192;
constexpr std::size_t most_drained = 65536;  // bytes that a client may send behind its request

bool would_wait() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

std::string answer_with(std::string_view status, std::string_view type, const std::string& body,
                        std::string_view more = "") {
  return format("HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n{}\r\n{}", status, type,
                body.size(), more, body);
}

std::string refusal(std::string_view status, const std::string& why, std::string_view more = "") {
  return answer_with(status, "text/plain; charset=utf-8", why + "\n", more);
}

}  // namespace

std::string http_answer(std::string_view request, const std::function<std::string()>& text) {
  const std::string_view line = request.substr(0, request.find("\r\n"));
  const std::size_t first = line.find(' '), second = line.find(' ', first + 1);
  if (first == std::string_view::npos || second == std::string_view::npos ||
      !line.substr(second + 1).starts_with("HTTP/1.")) {
    return refusal("400 Bad Request", "this is no request of HTTP/1.1");
  }
  const std::string_view method = line.substr(0, first), target = line.substr(first + 1, second - first - 1);
  if (target.substr(0, target.find('?')) != "/metrics") return refusal("404 Not Found", "metrics are at /metrics");
  if (method != "GET") return refusal("405 Method Not Allowed", "/metrics is read by GET", "Allow: GET\r\n");
  return answer_with("200 OK", "text/plain; version=0.0.4; charset=utf-8", text());
}

HttpConnection::~HttpConnection() { close(socket_); }

short HttpConnection::wanted_events() const { return sent_ < answer_.size() ? POLLOUT : POLLIN; }

bool HttpConnection::advance(const std::function<std::string()>& text) {
  if (answer_.empty()) return read(text);
  return sent_ < answer_.size() ? write() : drain();
}

bool HttpConnection::read(const std::function<std::string()>& text) {
  char bytes[2048];
  const ssize_t got = recv(socket_, bytes, sizeof bytes, MSG_DONTWAIT);
  if (got <= 0) return got < 0 && would_wait();
  request_.append(bytes, static_cast<std::size_t>(got));
  if (request_.find("\r\n\r\n") != std::string::npos) {
    answer_ = http_answer(request_, text);
  } else if (request_.size() > longest_request) {
    answer_ = refusal("431 Request Header Fields Too Large", "the request is too long");
  }
  return answer_.empty() || write();
}

bool HttpConnection::write() {
  const ssize_t done = send(socket_, answer_.data() + sent_, answer_.size() - sent_, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (done < 0) return would_wait();
  sent_ += static_cast<std::size_t>(done);
  if (sent_ == answer_.size()) shutdown(socket_, SHUT_WR);
  return true;
}

// Until the client closes, too: closing before that what it still sends would take the answer from it.
bool HttpConnection::drain() {
  char bytes[2048];
  const ssize_t got = recv(socket_, bytes, sizeof bytes, MSG_DONTWAIT);
  if (got <= 0) return got < 0 && would_wait();
  drained_ += static_cast<std::size_t>(got);
  return drained_ <= most_drained;
}

}  // namespace trainctl
