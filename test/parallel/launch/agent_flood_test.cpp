// Tests a launch agent with foreign connections: those without the secret neither keep the chief out nor end the agent.
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <future>
#include <string>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "parallel/launch/agent/agent.h"
#include "parallel/launch/agent/channel.h"
#include "parallel/launch/agent/chief.h"
#include "test/catch.h"
#include "test/parallel/launch/two_tasks.h"

namespace trainctl::agent_flood_test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr const char* secret = "0123456789abcdef";

TEST_CASE("a chief reaches an agent whose connections are all taken by strangers") {
  const int port = free_port();
  const pid_t agent = fork();
  if (agent == 0) {
    int code = 99;
    try {
      code = serve_as_agent(two_tasks(port, 1), secret, {.start = 60s, .stop = 60s});
    } catch (const Error&) {
    }
    _exit(code);
  }
  std::vector<int> strangers;
  for (int i = 0; i < 100; ++i) strangers.push_back(connect_to("127.0.0.1", port, Clock::now() + 10s));
  CHECK(strangers.back() >= 0);
  const auto begin = Clock::now();
  Leases leases(two_tasks(port, 0), secret, 30s);
  CHECK(Clock::now() - begin < 8s);  // before the strangers' connections time out
  leases.end(7);
  int status = 0;
  CHECK(waitpid(agent, &status, 0) == agent);
  CHECK(WEXITSTATUS(status) == 7);
  for (const int stranger : strangers) close(stranger);
}

TEST_CASE("an agent waits for its chief only while ranks may start, however long ranks may save") {
  const auto begin = Clock::now();
  try {
    serve_as_agent(two_tasks(free_port(), 1), secret, {.start = 300ms, .stop = 10min});
    FAIL("the agent ends without a chief");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::peer);
    CHECK(std::string(error.what()).find("cluster.start_timeout") != std::string::npos);
  }
  CHECK(Clock::now() - begin >= 300ms);
}

TEST_CASE("a chief whose connection is closed before the agent has proven itself tries again") {
  const int port = free_port(), listener = listen_at("127.0.0.1", port);
  auto agent = std::async(std::launch::async, [&] {
    for (int i = 0; i < 3; ++i) close(accept(listener, nullptr, nullptr));
    AgentChannel channel(accept(listener, nullptr, nullptr), AgentChannel::Side::agent, "worker 1", secret,
                         Clock::now() + 10s);
    channel.receive();
    channel.send(MessageKind::lease, "");
    return channel.receive()->text;
  });
  Leases(two_tasks(port, 0), secret, 30s).end(3);
  CHECK(agent.get() == "3");
  close(listener);
}

TEST_CASE("a chief that fails reports the cause by its deadline, and different secrets immediately") {
  for (const bool answers : {false, true}) {
    CAPTURE(answers);
    const int port = free_port(), listener = listen_at("127.0.0.1", port);
    std::thread other([&] {
      for (int connection = 0; (connection = accept(listener, nullptr, nullptr)) >= 0;) {
        if (!answers) {
          close(connection);
          continue;
        }
        CHECK_THROWS_AS(AgentChannel(connection, AgentChannel::Side::agent, "worker 1", "another-secret-of-mine",
                                     Clock::now() + 10s),
                        WrongSecret);
      }
    });
    const auto begin = Clock::now();
    try {
      Leases(two_tasks(port, 0), secret, 2s);
      FAIL("the chief is served");
    } catch (const Error& error) {
      const std::string text = error.what();
      CAPTURE(text);
      CHECK(error.kind() == ErrorKind::peer);
      CHECK(text.find("worker 1 (127.0.0.1:") != std::string::npos);
      CHECK(text.find(answers ? "another secret" : "tries") != std::string::npos);
      CHECK((Clock::now() - begin < 1s) == answers);
    }
    shutdown(listener, SHUT_RDWR);
    other.join();
    close(listener);
  }
}

}  // namespace
}  // namespace trainctl::agent_flood_test
