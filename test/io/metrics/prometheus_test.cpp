// Tests log.prometheus: addresses, the exposition text, and a server that bad clients cannot harm.
#include "io/metrics/prometheus/prometheus.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <memory>
#include <random>
#include <thread>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/version.h"
#include "core/spec/reader.h"
#include "test/catch.h"
#include "test/support/scrape.h"
#include "test/support/snapshots.h"

namespace trainctl::test::prometheus_test {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// Reads an address, and checks that it is the same after it is written and read. Returns it as text, "" if it is
// refused.
std::string read_back(const std::string& text) {
  Reader reader;
  ListenAddress address;
  if (!Value<ListenAddress>::read(scalar_node(text), reader, address)) {
    CHECK(contains(reader.diagnostics().at(0).message, "9464"));
    return "";
  }
  ListenAddress again;
  CHECK(Value<ListenAddress>::read(Value<ListenAddress>::write(address), reader, again));
  CHECK(again == address);
  return to_string(address);
}

Located<ListenAddress> at(int port) { return {{"127.0.0.1", port}, {"job.yaml", 12, 20}}; }

StepEvent step_event(std::int64_t step) {
  StepEvent event;
  event.step = step;
  event.epoch = static_cast<double>(step) / 16;
  event.loss = 1.0 / static_cast<double>(step);
  event.learning_rate = 0.1;
  event.samples_per_second = 1234.5;
  event.gradient_norm = 2;
  event.data_wait_share = 0.25;
  event.shares.communication = 0.125;
  return event;
}

std::string refusal(const Located<ListenAddress>& address) {
  try {
    const MetricsServer server(address, [] { return std::string(); });
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::config);
    return error.what();
  }
  return "";
}

const std::string get = "GET /metrics HTTP/1.1\r\nHost: a\r\nAccept: text/plain\r\n\r\n";

}  // namespace

TEST_CASE("log.prometheus is a port of this host, or an address and a port") {
  CHECK(read_back("9464") == "127.0.0.1:9464");
  CHECK(read_back("0.0.0.0:9464") == "0.0.0.0:9464");
  CHECK(read_back("[::]:1") == "[::]:1");
  CHECK(read_back("[fe80::1]:65535") == "[fe80::1]:65535");
  for (const char* bad : {"", "0", "65536", "-1", "9464.5", "1e3", "port", "host:9464", "0.0.0.0", "0.0.0.0:", ":9464",
                          "::1:9464", "[::1]", "[0.0.0.0]:9464", "1.2.3:9464", "99999999999999999999"}) {
    CAPTURE(bad);
    CHECK(read_back(bad).empty());
  }
}

TEST_CASE("a state becomes text in the exposition format, with all known values") {
  PrometheusState state;
  CHECK(prometheus_text(state).empty());
  state.run = "one \"two\" \\ three\nfour";
  RunRecord& record = state.record;
  record.start.emplace();
  record.start->version = version();
  record.start->ranks = 8;
  record.start->total_steps = 1000;
  record.start->device = "a device";
  state.restarts = 2;
  record.step = step_event(24);
  record.step->loss = nan;
  record.step->gradient_norm = std::numeric_limits<double>::infinity();
  state.step_time = 1.7e9;
  record.epoch = EpochEvent{1, 16, {{"loss", 0.5}, {"accuracy", 0.75}}, {{"loss", 0.625}}, 2.5};
  record.checkpoint = CheckpointEvent{16, "somewhere", 0.125, 4096};
  record.checkpoint_time = 1.6e9;
  GpuReading reading;
  reading.utilization = 0.875;
  reading.memory_bytes = 4e9;
  reading.clock_mhz = 1500;
  reading.throttled = GpuReading::power_cap;
  record.gpus = {{0, reading}, {3, GpuReading{}}};

  std::map<std::string, double> samples = samples_of(prometheus_text(state));
  CHECK(samples.at("trainctl_run_info{run=\"one \\\"two\\\" \\\\ three\\nfour\",version=\"" + std::string(version()) +
                   "\",device=\"a device\"}") == 1);
  CHECK(samples.at("trainctl_ranks") == 8);
  CHECK(samples.at("trainctl_restarts_total") == 2);
  CHECK(samples.at("trainctl_planned_steps") == 1000);
  CHECK(samples.at("trainctl_steps_total") == 24);
  CHECK(samples.at("trainctl_epochs_total") == 1.5);
  CHECK(std::isnan(samples.at("trainctl_loss")));
  CHECK(std::isinf(samples.at("trainctl_gradient_norm")));
  CHECK(samples.at("trainctl_learning_rate") == 0.1);
  CHECK(samples.at("trainctl_samples_per_second") == 1234.5);
  CHECK(samples.at("trainctl_data_wait_ratio") == 0.25);
  CHECK(samples.at("trainctl_communication_wait_ratio") == 0.125);
  CHECK(samples.at("trainctl_last_step_timestamp_seconds") == 1.7e9);
  CHECK(samples.at("trainctl_epoch_metric{metric=\"accuracy\",data=\"training\"}") == 0.75);
  CHECK(samples.at("trainctl_epoch_metric{metric=\"loss\",data=\"validation\"}") == 0.625);
  CHECK(samples.at("trainctl_checkpoint_step") == 16);
  CHECK(samples.at("trainctl_checkpoint_timestamp_seconds") == 1.6e9);
  CHECK(samples.at("trainctl_checkpoint_size_bytes") == 4096);
  CHECK(samples.at("trainctl_gpu_utilization_ratio{rank=\"0\"}") == 0.875);
  CHECK(samples.at("trainctl_gpu_clock_hertz{rank=\"0\"}") == 1.5e9);
  CHECK(samples.at("trainctl_gpu_throttled{rank=\"0\"}") == 1);
  CHECK(samples.at("trainctl_gpu_throttled{rank=\"3\"}") == 0);
  CHECK(samples.count("trainctl_gpu_utilization_ratio{rank=\"3\"}") == 0);  // not known
  CHECK_FALSE(contains(prometheus_text(state), "trainctl_gpu_power_watts"));
}

TEST_CASE("the sink serves the newest state and the number of restarts") {
  const TemporaryFolder folder;
  write_text(folder / "metrics.jsonl",
             "{\"event\":\"start\",\"time\":1}\n{\"event\":\"step\",\"time\":2}\n{\"event\":\"start\",\"time\":3}\n");
  const int port = free_port();
  {
    Prometheus sink(at(port), "flowers", folder / "metrics.jsonl");
    CHECK(scrape(port).empty());
    sink.start({});
    const std::vector<GpuSample> gpus{{1, GpuReading{0.5}}};
    for (int step = 1; step <= 20; ++step) {
      StepEvent event = step_event(step);
      if (step == 10) event.gpus = gpus;
      sink.step(event);
    }
    sink.epoch({1, 16, {{"loss", 0.5}}, {}, 1});
    sink.checkpoint({16, "", 1, 1});
    const std::map<std::string, double> samples = samples_of(scrape(port));
    CHECK(samples.at("trainctl_steps_total") == 20);
    CHECK(samples.at("trainctl_restarts_total") == 1);
    CHECK(samples.at("trainctl_gpu_utilization_ratio{rank=\"1\"}") == 0.5);
    CHECK(samples.at("trainctl_last_step_timestamp_seconds") == Approx(wall_seconds()).margin(60));
    CHECK(samples.at("trainctl_checkpoint_timestamp_seconds") == Approx(wall_seconds()).margin(60));
  }
  CHECK_FALSE(is_listened_on(port));
}

TEST_CASE("each kind of request has one answer, after which the connection is closed") {
  const int port = free_port();
  const MetricsServer server(at(port), [] { return std::string("the text\n"); });
  const std::string good = answer_to(port, get);
  CHECK(good.starts_with("HTTP/1.1 200 OK\r\n"));
  CHECK(contains(good, "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
  CHECK(contains(good, "Content-Length: 9\r\n"));
  CHECK(good.ends_with("\r\n\r\nthe text\n"));
  CHECK(answer_to(port, "GET /metrics?a=b HTTP/1.0\r\n\r\n") == good);
  CHECK(answer_to(port, "GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
  CHECK(answer_to(port, "GET /metricsx HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
  CHECK(contains(answer_to(port, "POST /metrics HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc"), "Allow: GET\r\n"));
  for (const char* bad :
       {"\r\n\r\n", "GET\r\n\r\n", "GET /metrics\r\n\r\n", "GET /metrics SMTP/1\r\n\r\n", "a b c\r\n\r\n"}) {
    CAPTURE(bad);
    CHECK(answer_to(port, bad).starts_with("HTTP/1.1 400 "));
  }
  CHECK(answer_to(port, "GET /metrics HTTP/1.1\r\nX: " + std::string(20000, 'x')).starts_with("HTTP/1.1 431 "));

  std::mt19937 random(3);
  for (int i = 0; i < 20; ++i) {
    std::string noise(random() % 500 + 4, ' ');
    for (char& c : noise) c = static_cast<char>(random());
    answer_to(port, noise + "\r\n\r\n");
  }
  CHECK(answer_to(port, get) == good);
}

TEST_CASE("other requests cost no more than requests for the metrics") {
  const int port = free_port();
  std::atomic<int> scrapes{0};
  const std::string text(5000, 'm');
  const MetricsServer server(at(port), [&] {
    ++scrapes;
    return text;
  });
  const std::string good = answer_to(port, get);
  CHECK(good.ends_with(text));
  // HEAD is refused, and its answer has no body.
  const std::string head = answer_to(port, "HEAD /metrics HTTP/1.1\r\nHost: a\r\n\r\n");
  CHECK(head.starts_with("HTTP/1.1 405 "));
  CHECK(contains(head, "Allow: GET\r\n"));
  CHECK(head.ends_with("\r\n\r\n"));
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"}) {
    CAPTURE(method);
    CHECK(answer_to(port, format("{} /metrics HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\nabc", method))
              .starts_with("HTTP/1.1 405 "));
  }
  for (const char* path :
       {"/", "/metrics/", "/metric", "//metrics", "/../metrics", "/..%2f..%2fetc/passwd", "*", "/%"}) {
    CAPTURE(path);
    CHECK(answer_to(port, format("GET {} HTTP/1.1\r\n\r\n", path)).starts_with("HTTP/1.1 404 "));
  }
  // A connection serves one request; further ones are not answered.
  CHECK(answer_to(port, get + get + get) == good);
  CHECK(answer_to(port, "GET /metrics HTTP/1.1\r\nConnection: keep-alive\r\n\r\n") == good);
  // Ranges are ignored, also many at once.
  std::string ranges = "bytes=0-";
  while (ranges.size() < 8000) ranges += ",0-";
  for (const std::string& range :
       {std::string("bytes=0-9"), std::string("bytes=0-,0-,0-"), std::string("lines=x"), ranges}) {
    CAPTURE(range.size());
    const std::string answer = answer_to(port, "GET /metrics HTTP/1.1\r\nRANGE: a\r\nRange: " + range + "\r\n\r\n");
    CHECK(answer == good);
  }
  CHECK(answer_to(port, "GET /" + std::string(20000, 'x') + " HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 431 "));
  CHECK(answer_to(port, std::string(9000, 'x')).starts_with("HTTP/1.1 431 "));
  std::string many_headers = "GET /metrics HTTP/1.1\r\n";
  while (many_headers.size() < 8000) many_headers += "a: b\r\n";
  CHECK(answer_to(port, many_headers + "\r\n") == good);
  CHECK(answer_to(port, get) == good);
  CHECK(scrapes < 12);
}

TEST_CASE("a scraper that accepts gzip may get it") {
  const int port = free_port();
  const MetricsServer server(at(port), [] { return std::string(100'000, 'm'); });
  const std::string answer = answer_to(port, "GET /metrics HTTP/1.1\r\nAccept-Encoding: gzip\r\n\r\n");
  CHECK(answer.starts_with("HTTP/1.1 200 OK\r\n"));
  const std::size_t body = answer.find("\r\n\r\n") + 4;
  if (contains(answer, "Content-Encoding: gzip\r\n")) {
    CHECK(answer.substr(body, 2) == "\x1f\x8b");
    CHECK(answer.size() < 5000);
  } else {
    CHECK(answer.size() - body == 100'000);
  }
}

TEST_CASE("a client that sends its request slowly is cut off after five seconds, and does not delay others") {
  const int port = free_port();
  const MetricsServer server(at(port), [] { return std::string("text"); });
  const int slow = connect_to(port);
  const double begin = seconds_now();
  std::string answer;
  for (std::size_t i = 0; seconds_now() - begin < 30; ++i) {
    const char c = get[std::min(i, get.size() - 3)];  // the request never becomes complete
    if (send(slow, &c, 1, MSG_NOSIGNAL) < 0) break;
    char byte = 0;
    if (recv(slow, &byte, 1, MSG_DONTWAIT) == 0) break;  // closed
    if (i == 3) CHECK(scrape(port) == "text");
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  CHECK(seconds_now() - begin > 4);
  CHECK(seconds_now() - begin < 12);
  close(slow);
}

TEST_CASE("if there are too many connections, the oldest is closed; a server with open connections ends immediately") {
  const int port = free_port();
  std::vector<int> clients;
  auto server = std::make_unique<MetricsServer>(at(port), [] { return std::string("text"); });
  for (int i = 0; i < 17; ++i) {
    clients.push_back(connect_to(port));
    std::this_thread::sleep_for(std::chrono::milliseconds(30));  // so that it is accepted before the next
  }
  const double begin = seconds_now();
  CHECK(received(clients.front()).empty());  // closed, long before its time limit
  CHECK(seconds_now() - begin < 3);
  send(clients.back(), get.data(), get.size(), MSG_NOSIGNAL);
  CHECK(received(clients.back()).ends_with("text"));
  const double end = seconds_now();
  server.reset();
  CHECK(seconds_now() - end < 2);
  for (const int client : clients) close(client);
}

TEST_CASE("a request that comes byte by byte is answered, and a long answer that is read slowly is complete") {
  const int port = free_port();
  std::string long_text(40 << 20, ' ');  // more than sockets buffer
  for (std::size_t i = 0; i < long_text.size(); ++i) long_text[i] = static_cast<char>('a' + i * i % 23);
  const MetricsServer server(at(port), [&long_text] { return long_text; });
  const int client = connect_to(port);
  for (const char c : get) {
    REQUIRE(send(client, &c, 1, 0) == 1);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // the buffers of the sockets are full
  CHECK((received(client).ends_with(long_text)));
  close(client);
}

TEST_CASE("many clients that are silent or never read do not block the metrics for long") {
  const int port = free_port();
  std::vector<int> idle;
  {
    const MetricsServer server(at(port), [] { return std::string(1 << 20, 'x'); });
    for (int i = 0; i < 40; ++i) idle.push_back(connect_to(port));
    for (const int client : idle) {
      if (client % 2 == 0) send(client, get.data(), get.size(), MSG_NOSIGNAL);  // this client never reads
    }
    const double begin = seconds_now();
    CHECK(scrape(port).size() == 1 << 20);
    CHECK(seconds_now() - begin < 30);
    const int late = connect_to(port);  // a connection that is not finished after five seconds is closed
    CHECK(received(late).empty());
    CHECK(seconds_now() - begin < 60);
    close(late);
  }
  CHECK_FALSE(is_listened_on(port));  // closed immediately, although clients are connected
  for (const int client : idle) close(client);
}

TEST_CASE("at most fifty connections a second are served, so that training keeps its cores") {
  const int port = free_port();
  std::atomic<int> scrapes{0};
  const MetricsServer server(at(port), [&scrapes] {
    ++scrapes;
    return std::string("text");
  });
  const double begin = seconds_now();
  for (int i = 0; i < 120; ++i) CHECK(scrape(port) == "text");
  CHECK(seconds_now() - begin > 1.9);
  CHECK(scrapes == 120);
}

TEST_CASE("training never waits for a scrape, and a scrape reads consistent states") {
  const int port = free_port();
  Prometheus sink(at(port), "busy", "no file");
  sink.start({});
  std::atomic<bool> ends{false};
  std::thread training([&] {
    for (std::int64_t step = 1; !ends; ++step) sink.step(step_event(step));
  });
  double last = 0;
  for (int i = 0; i < 40 || (last == 0 && i < 4000); ++i) {  // a busy machine may let training begin late
    const std::map<std::string, double> samples = samples_of(scrape(port));
    if (!samples.contains("trainctl_steps_total")) continue;  // no step yet
    const double step = samples.at("trainctl_steps_total");
    CHECK(step >= last);
    CHECK(samples.at("trainctl_loss") == 1 / step);
    last = step;
  }
  ends = true;
  training.join();
  CHECK(last > 0);
}

TEST_CASE("an address that cannot be listened on is an error with its location and what to do") {
  const int port = free_port();
  const MetricsServer server(at(port), [] { return std::string(); });
  const std::string taken = refusal(at(port));
  CHECK(contains(taken, format("job.yaml:12:20: log.prometheus: port {} of 127.0.0.1 is in use", port)));
  CHECK(contains(taken, "log.prometheus=PORT"));
  CHECK(contains(refusal({{"192.0.2.1", port}, {}}), "192.0.2.1 is not an address of this host"));
}

TEST_CASE("the network interface of the ranks does not decide where metrics are served") {
  setenv("TRAINCTL_LISTEN_ON", "lo", 1);
  const int port = free_port();
  {
    const MetricsServer server({{"0.0.0.0", port}, {}}, [] { return std::string("text"); });
    CHECK(scrape(port) == "text");
    // The first server listens on all addresses, not on loopback's only, so a second one is refused at any of them.
    CHECK(contains(refusal({{"127.0.0.2", port}, {}}), "is in use"));
  }
  unsetenv("TRAINCTL_LISTEN_ON");
}

}  // namespace trainctl::test::prometheus_test
