// One HTTP request and its answer, on a socket that is never waited for.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace trainctl {

// The whole answer to a request, head included; `text` is called for GET /metrics alone.
std::string http_answer(std::string_view request, const std::function<std::string()>& text);

class HttpConnection {
 public:
  // Takes the socket, and closes it at the end. `deadline` in seconds_now(), for all of it.
  HttpConnection(int socket, double deadline) : socket_(socket), deadline_(deadline) {}
  ~HttpConnection();
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  int socket() const { return socket_; }
  double deadline() const { return deadline_; }
  // What poll() is to wait for.
  short wanted_events() const;
  // Reads or writes as much as is possible at once. False when the connection is to be closed.
  bool advance(const std::function<std::string()>& text);

 private:
  bool read(const std::function<std::string()>& text);
  bool write();
  bool drain();

  int socket_;
  double deadline_;
  std::string request_;
  std::string answer_;  // empty: the request is not whole
  std::size_t sent_ = 0;
  std::size_t drained_ = 0;
};

}  // namespace trainctl
