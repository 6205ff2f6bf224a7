// Answers HTTP requests as the endpoint for Prometheus does, and reads metrics.jsonl as reports and `watch` do.
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>

#include "io/metrics/prometheus/server.h"
#include "io/metrics/watch/read_events.h"
#include "io/report/history.h"
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

void fuzz_metrics_jsonl(std::string_view bytes) {
  RunRecord record;
  for (std::size_t begin = 0, end = 0; (end = bytes.find('\n', begin)) != std::string_view::npos; begin = end + 1) {
    add_line(record, std::string(bytes.substr(begin, end - begin)));
  }
  progress_of(record);
  const RunHistory history = read_history(file_of(bytes, "metrics.jsonl"));
  for (const EpochEvent& epoch : history.epochs) history.epoch_at(epoch.step);
  history.best();
  history.steps_done();
  history.epochs_done();
  history.seconds();
}

}  // namespace trainctl::fuzz
