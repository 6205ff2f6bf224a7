// Answers HTTP requests as the endpoint for Prometheus does.
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>

#include "io/metrics/prometheus/server.h"
#include "test/fuzz/targets.h"

namespace trainctl::fuzz {

void fuzz_http(std::string_view bytes) {
  std::array<int, 2> ends{-1, -1};
  expect(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0, "a fuzz test cannot make sockets");
  constexpr std::size_t most = 100'000;  // fits into the socket's buffer
  [[maybe_unused]] const ssize_t sent = send(ends[1], bytes.data(), std::min(bytes.size(), most), MSG_NOSIGNAL);
  shutdown(ends[1], SHUT_WR);
  answer_connection(ends[0], [] { return std::string("trainctl_step 7\n"); });
  std::string answer;
  std::array<char, 4096> piece{};
  for (ssize_t got = 0; (got = recv(ends[1], piece.data(), piece.size(), 0)) > 0;) {
    answer.append(piece.data(), static_cast<std::size_t>(got));
  }
  close(ends[1]);
  expect(answer.empty() || answer.starts_with("HTTP/1.1 "), "an answer is not one of HTTP");
}

}  // namespace trainctl::fuzz
