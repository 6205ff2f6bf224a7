// The connection of a chief and a launch agent: who does not know the secret says and hears nothing.
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <future>
#include <optional>
#include <string>

#include "core/base/error.h"
#include "core/base/hmac.h"
#include "parallel/launch/agent/channel.h"
#include "parallel/launch/agent/secret.h"
#include "test/catch.h"

namespace trainctl::agent_test {
namespace {

using Side = AgentChannel::Side;

AgentChannel::Deadline soon() { return std::chrono::steady_clock::now() + std::chrono::seconds(5); }

std::array<int, 2> sockets() {
  std::array<int, 2> ends{};
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) == 0);
  return ends;
}

// Both ends of a connection; nothing for one that refuses the other.
struct Pair {
  std::optional<AgentChannel> chief, agent;
};
Pair connected(const std::string& of_chief, const std::string& of_agent) {
  const std::array<int, 2> ends = sockets();
  const auto open = [](int socket, Side side, const std::string& secret) -> std::optional<AgentChannel> {
    try {
      return AgentChannel(socket, side, secret, soon());
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::peer);
      return {};
    }
  };
  auto agent = std::async(std::launch::async, [&] { return open(ends[1], Side::agent, of_agent); });
  Pair pair{open(ends[0], Side::chief, of_chief), {}};
  if (auto other = agent.get()) pair.agent.emplace(std::move(*other));
  return pair;
}

std::string hex(const std::string& bytes) {
  std::string text;
  for (const unsigned char byte : bytes) {
    std::array<char, 3> digits{};
    std::snprintf(digits.data(), digits.size(), "%02x", byte);
    text += digits.data();
  }
  return text;
}

TEST_CASE("HMAC-SHA-256 gives the values of RFC 4231") {
  CHECK(hex(hmac_sha256("Jefe", "what do ya want for nothing?")) ==
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  CHECK(hex(hmac_sha256(std::string(20, '\x0b'), "Hi There")) ==
        "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  CHECK(equal_secretly("ab", "ab"));
  CHECK_FALSE(equal_secretly("ab", "ac"));
  CHECK_FALSE(equal_secretly("ab", "abc"));
  CHECK(random_bytes(32) != random_bytes(32));
}

TEST_CASE("messages go both ways between those who share a secret") {
  Pair pair = connected("0123456789abcdef", "0123456789abcdef");
  REQUIRE(pair.chief);
  REQUIRE(pair.agent);
  const std::string bytes = random_bytes(1 << 16);
  for (int i = 0; i < 3; ++i) {
    CHECK(pair.chief->send(MessageKind::command, "echo"));
    CHECK(pair.agent->receive()->text == "echo");
    CHECK(pair.agent->send(MessageKind::output, bytes));
    const auto message = pair.chief->receive();
    REQUIRE(message);
    CHECK(message->kind == MessageKind::output);
    CHECK(message->text == bytes);
  }
  pair.chief.reset();
  CHECK_FALSE(pair.agent->receive());
}

TEST_CASE("without the secret neither side is served") {
  const Pair pair = connected("0123456789abcdef", "0123456789abcdeF");
  CHECK_FALSE(pair.chief);
  CHECK_FALSE(pair.agent);
}

TEST_CASE("who repeats what the agent says, or says nothing, is refused by the deadline") {
  const std::array<int, 2> ends = sockets();
  auto agent = std::async(std::launch::async, [&] {
    try {
      AgentChannel(ends[1], Side::agent, "0123456789abcdef",
                   std::chrono::steady_clock::now() + std::chrono::seconds(1));
    } catch (const Error&) {
      return true;
    }
    return false;
  });
  std::array<char, 256> heard{};
  const ssize_t count = read(ends[0], heard.data(), heard.size());
  CHECK(count > 0);
  CHECK(write(ends[0], heard.data(), static_cast<std::size_t>(count)) == count);
  CHECK(agent.get());
  close(ends[0]);
}

// A connection with somebody in its middle, who changes what the chief says.
TEST_CASE("a message that was changed, repeated or made up is noticed") {
  for (const std::string attack : {"none", "changed", "repeated", "made up", "returned"}) {
    CAPTURE(attack);
    const std::array<int, 2> left = sockets(), right = sockets();
    auto chief =
        std::async(std::launch::async, [&] { return AgentChannel(left[0], Side::chief, "0123456789abcdef", soon()); });
    auto agent =
        std::async(std::launch::async, [&] { return AgentChannel(right[1], Side::agent, "0123456789abcdef", soon()); });
    const auto pass = [](int from, int to, std::size_t bytes) {
      std::string text(bytes, '\0');
      for (std::size_t had = 0; had < bytes;) {
        const ssize_t count = read(from, text.data() + had, bytes - had);
        REQUIRE(count > 0);
        had += static_cast<std::size_t>(count);
      }
      if (to >= 0) CHECK(write(to, text.data(), bytes) == static_cast<ssize_t>(bytes));
      return text;
    };
    constexpr std::size_t greeting = 17 + 32, code = 32;
    pass(left[1], right[0], greeting);
    pass(right[0], left[1], greeting);
    pass(left[1], right[0], code);
    pass(right[0], left[1], code);
    AgentChannel one = chief.get(), other = agent.get();
    const std::size_t size = 5 + 4 + code;
    one.send(MessageKind::command, "true");
    std::string message = pass(left[1], -1, size);
    const auto give = [&](int to) { CHECK(write(to, message.data(), size) == static_cast<ssize_t>(size)); };
    if (attack == "none") {
      give(right[0]);
      CHECK(other.receive()->text == "true");
    } else if (attack == "changed") {
      message[6] ^= 1;
      give(right[0]);
      CHECK_THROWS_AS(other.receive(), Error);
    } else if (attack == "repeated") {
      give(right[0]);
      give(right[0]);
      CHECK(other.receive());
      CHECK_THROWS_AS(other.receive(), Error);
    } else if (attack == "made up") {
      message.replace(9, code, random_bytes(code));
      give(right[0]);
      CHECK_THROWS_AS(other.receive(), Error);
    } else {
      give(left[1]);
      CHECK_THROWS_AS(one.receive(), Error);
    }
    close(left[1]);
    close(right[0]);
  }
}

TfConfig tasks_on(const std::string& other) { return {{{"worker", 0, "localhost", 1}, {"worker", 1, other, 2}}, 0}; }

TEST_CASE("the secret comes from a variable or a file that nobody else can read") {
  std::string folder = "/tmp/trainctl-secret-XXXXXX";
  REQUIRE(mkdtemp(folder.data()) != nullptr);
  const std::string file = folder + "/secret";
  std::ofstream(file) << "0123456789abcdef\n";
  const Variables variables{{"TRAINCTL_SECRET_FILE", file}};
  REQUIRE(chmod(file.c_str(), 0640) == 0);
  CHECK_THROWS_AS(stated_secret(variables), Error);
  REQUIRE(chmod(file.c_str(), 0600) == 0);
  CHECK(stated_secret(variables) == "0123456789abcdef");
  CHECK(stated_secret(Variables{{"TRAINCTL_SECRET", "another-secret-that-is-long"}}) == "another-secret-that-is-long");
  CHECK_THROWS_AS(stated_secret(Variables{{"TRAINCTL_SECRET", "short"}}), Error);
  CHECK_FALSE(stated_secret(Variables()));

  const Variables home{{"HOME", folder}};
  CHECK_THROWS_AS(secret_for(tasks_on("h2"), home), Error);
  const std::string own = secret_for(tasks_on("127.0.0.1"), home);
  CHECK(own.size() == 64);
  CHECK(secret_for(tasks_on("localhost"), home) == own);
  CHECK(secret_for(tasks_on("h2"), variables) == "0123456789abcdef");
  CHECK(system(("rm -rf " + folder).c_str()) == 0);
}

}  // namespace
}  // namespace trainctl::agent_test
