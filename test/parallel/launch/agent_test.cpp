// Tests the connection of a chief and a launch agent: a peer that does not know the secret can neither send nor
// receive.
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <optional>
#include <string>

#include "core/base/error.h"
#include "core/base/hmac.h"
#include "parallel/launch/agent/channel.h"
#include "parallel/launch/agent/connections.h"
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

// Both ends of a connection; an end is empty if it refuses the other.
struct Pair {
  std::optional<AgentChannel> chief, agent;
};
Pair connected(const std::string& of_chief, const std::string& of_agent,
               const std::string& expected_agent = "worker 1") {
  const std::array<int, 2> ends = sockets();
  const auto open = [](int socket, Side side, const std::string& name,
                       const std::string& secret) -> std::optional<AgentChannel> {
    try {
      return AgentChannel(socket, side, name, secret, soon());
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::peer);
      return {};
    }
  };
  auto agent = std::async(std::launch::async, [&] { return open(ends[1], Side::agent, "worker 1", of_agent); });
  Pair pair{open(ends[0], Side::chief, expected_agent, of_chief), {}};
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

TEST_CASE("HMAC-SHA-256 returns the values of RFC 4231") {
  CHECK(hex(hmac_sha256("Jefe", "what do ya want for nothing?")) ==
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  CHECK(hex(hmac_sha256(std::string(20, '\x0b'), "Hi There")) ==
        "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  CHECK(equal_in_constant_time("ab", "ab"));
  CHECK_FALSE(equal_in_constant_time("ab", "ac"));
  CHECK_FALSE(equal_in_constant_time("ab", "abc"));
  CHECK(random_bytes(32) != random_bytes(32));
}

TEST_CASE("messages go both ways between peers that share a secret") {
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

TEST_CASE("peers with different secrets refuse each other") {
  const Pair pair = connected("0123456789abcdef", "0123456789abcdeF");
  CHECK_FALSE(pair.chief);
  CHECK_FALSE(pair.agent);
}

// Otherwise a relay without the secret could connect the chief to the agent of another task.
TEST_CASE("the chief refuses an agent of another task") {
  const Pair pair = connected("0123456789abcdef", "0123456789abcdef", "worker 2");
  CHECK_FALSE(pair.chief);
  CHECK_FALSE(pair.agent);
}

TEST_CASE("a chief distinguishes a wrong secret from a closed connection") {
  for (const bool answers : {true, false}) {
    CAPTURE(answers);
    const std::array<int, 2> ends = sockets();
    auto agent = std::async(std::launch::async, [&] {
      if (!answers) return static_cast<void>(close(ends[1]));
      CHECK_THROWS_AS(AgentChannel(ends[1], Side::agent, "w", "another-secret-that-is-long", soon()), WrongSecret);
    });
    if (answers) {
      CHECK_THROWS_AS(AgentChannel(ends[0], Side::chief, "w", "0123456789abcdef", soon()), WrongSecret);
    } else {
      bool wrong = false;
      try {
        AgentChannel(ends[0], Side::chief, "w", "0123456789abcdef", soon());
      } catch (const WrongSecret&) {
        wrong = true;
      } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::peer);
      }
      CHECK_FALSE(wrong);
    }
    agent.get();
  }
}

TEST_CASE("unauthenticated connections are closed for newer ones, the oldest first") {
  Connections connections(3);
  for (const pid_t process : {11, 12, 13}) {
    CHECK(connections.make_space() == 0);
    connections.add(process);
  }
  connections.has_proven(11);
  CHECK(connections.make_space() == 12);
  connections.add(14);
  connections.has_proven(13);
  CHECK(connections.make_space() == 14);
  connections.add(15);
  connections.has_proven(15);
  CHECK_FALSE(connections.make_space());  // all connections are the chief's
  connections.has_ended(11);
  CHECK(connections.make_space() == 0);
}

TEST_CASE("refused connections are logged immediately, and then less and less often") {
  RefusalLog log;
  const auto begin = RefusalLog::Time();
  int lines = 0;
  constexpr int seconds = 24 * 3600;
  for (int second = 0; second < seconds; ++second) {
    for (int i = 0; i < 10; ++i) log.refused();
    const std::string line = log.line_at(begin + std::chrono::seconds(second));
    if (second == 0) CHECK(line.starts_with("10 connections were refused"));
    if (second == 60) CHECK(line.starts_with("600 connections were refused"));
    lines += line.empty() ? 0 : 1;
  }
  CHECK(lines < 40);
}

TEST_CASE("a peer that repeats the agent's messages, or sends nothing, is refused by the deadline") {
  const std::array<int, 2> ends = sockets();
  auto agent = std::async(std::launch::async, [&] {
    try {
      AgentChannel(ends[1], Side::agent, "worker 1", "0123456789abcdef",
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

// A connection with an attacker in the middle, who changes the chief's messages.
TEST_CASE("a message that was changed, repeated or made up is refused") {
  for (const std::string attack : {"none", "changed", "repeated", "made up", "returned"}) {
    CAPTURE(attack);
    const std::array<int, 2> left = sockets(), right = sockets();
    auto chief = std::async(std::launch::async,
                            [&] { return AgentChannel(left[0], Side::chief, "w", "0123456789abcdef", soon()); });
    auto agent = std::async(std::launch::async,
                            [&] { return AgentChannel(right[1], Side::agent, "w", "0123456789abcdef", soon()); });
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
    const auto deliver = [&](int to) { CHECK(write(to, message.data(), size) == static_cast<ssize_t>(size)); };
    if (attack == "none") {
      deliver(right[0]);
      CHECK(other.receive()->text == "true");
    } else if (attack == "changed") {
      message[6] ^= 1;
      deliver(right[0]);
      CHECK_THROWS_AS(other.receive(), Error);
    } else if (attack == "repeated") {
      deliver(right[0]);
      deliver(right[0]);
      CHECK(other.receive());
      CHECK_THROWS_AS(other.receive(), Error);
    } else if (attack == "made up") {
      message.replace(9, code, random_bytes(code));
      deliver(right[0]);
      CHECK_THROWS_AS(other.receive(), Error);
    } else {
      deliver(left[1]);
      CHECK_THROWS_AS(one.receive(), Error);
    }
    close(left[1]);
    close(right[0]);
  }
}

TfConfig tasks_on(const std::string& other) { return {{{"worker", 0, "localhost", 1}, {"worker", 1, other, 2}}, 0}; }

// A folder that only this user may enter; it is removed with its files at the end.
struct Folder {
  Folder() { REQUIRE(mkdtemp(path.data()) != nullptr); }
  ~Folder() { std::filesystem::remove_all(path); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string file(const std::string& name, const std::string& text, mode_t mode = 0600) const {
    std::ofstream(path + "/" + name) << text;
    REQUIRE(chmod((path + "/" + name).c_str(), mode) == 0);
    return path + "/" + name;
  }
  std::string path = "/tmp/trainctl-secret-XXXXXX";
};

std::optional<std::string> secret_in(const std::string& file) {
  return given_secret(Variables{{"TRAINCTL_SECRET_FILE", file}});
}

// The error with which the file is refused.
std::string refusal_of(const std::string& file) {
  try {
    secret_in(file);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::config);
    return error.what();
  }
  return "";
}

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

TEST_CASE("the secret comes from a variable or a file that nobody else can read") {
  const Folder folder;
  const std::string file = folder.file("secret", "0123456789abcdef\n");
  CHECK(secret_in(file) == "0123456789abcdef");
  for (const mode_t mode : {0640, 0604, 0620, 0602, 0610}) {
    REQUIRE(chmod(file.c_str(), mode) == 0);
    CHECK(has(refusal_of(file), "other users may read"));
  }
  REQUIRE(chmod(file.c_str(), 0400) == 0);
  CHECK(secret_in(file) == "0123456789abcdef");
  CHECK(given_secret(Variables{{"TRAINCTL_SECRET", "another-secret-that-is-long"}}) == "another-secret-that-is-long");
  CHECK_FALSE(given_secret(Variables()));
  CHECK(secret_for(tasks_on("h2"), Variables{{"TRAINCTL_SECRET_FILE", file}}) == "0123456789abcdef");
  CHECK(has(refusal_of(folder.path + "/absent"), "No such file"));
}

TEST_CASE("a file of a secret that another user may have supplied is refused") {
  const Folder folder;
  const std::string file = folder.file("secret", "0123456789abcdef");
  const std::string link = folder.path + "/link", pipe = folder.path + "/pipe";
  REQUIRE(symlink(file.c_str(), link.c_str()) == 0);
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(has(refusal_of(link), "symbolic link"));
  CHECK(has(refusal_of(pipe), "not a regular file"));
  CHECK(has(refusal_of(folder.path), "not a regular file"));
  REQUIRE(chmod(folder.path.c_str(), 0777) == 0);
  CHECK(has(refusal_of(file), "may replace the files"));
  REQUIRE(chmod(folder.path.c_str(), 01777) == 0);  // as /tmp: nobody else can replace the file
  CHECK(refusal_of(file).empty());
  REQUIRE(chmod(folder.path.c_str(), 0755) == 0);
  CHECK(refusal_of(file).empty());
  if (geteuid() == 0) {
    REQUIRE(chown(file.c_str(), 12345, 12345) == 0);
    CHECK(has(refusal_of(file), "belongs to another user"));
    REQUIRE(chown(file.c_str(), 0, 0) == 0);
    REQUIRE(chown(folder.path.c_str(), 12345, 12345) == 0);
    CHECK(has(refusal_of(file), "belongs to another user"));
  }
}

TEST_CASE("a secret that can be guessed is refused") {
  const auto accepted = [](const std::string& secret) {
    try {
      return given_secret(Variables{{"TRAINCTL_SECRET", secret}}).has_value();
    } catch (const Error&) {
      return false;
    }
  };
  for (const char* weak : {"short", "aaaaaaaaaaaaaaaa", "aaaaaaaaaaaaaaab", "abababababababab", "12345123451234512345",
                           "password-password-password-", "abcdefghabcdefgh", "aaaabbbbccccddddeeee"}) {
    CAPTURE(weak);
    CHECK_FALSE(accepted(weak));
  }
  for (int i = 0; i < 1000; ++i) CHECK(accepted(hex(random_bytes(16))));
}

TEST_CASE("tasks on one host share a secret in the user's cache, which no other user can have written") {
  const Folder folder;
  const Variables home{{"HOME", folder.path}};
  for (const char* other : {"h2", "127.evil.example", "localhost.evil.example", "127.0.0.1.example", "128.0.0.1"}) {
    CAPTURE(other);
    CHECK_THROWS_AS(secret_for(tasks_on(other), home), Error);
  }
  const std::string own = secret_for(tasks_on("127.0.0.1"), home);
  CHECK(own.size() == 64);
  CHECK(secret_for(tasks_on("localhost"), home) == own);
  CHECK(secret_for(tasks_on("127.255.0.9"), home) == own);
  // The working directory is not used as a cache.
  CHECK_THROWS_AS(secret_for(tasks_on("localhost"), Variables()), Error);
  CHECK_THROWS_AS(secret_for(tasks_on("localhost"), Variables{{"HOME", "."}}), Error);
  CHECK(secret_for(tasks_on("localhost"), Variables{{"XDG_CACHE_HOME", "cache"}, {"HOME", folder.path}}) == own);

  const std::string launch = folder.path + "/.cache/trainctl/launch";
  REQUIRE(chmod(launch.c_str(), 0755) == 0);
  CHECK_THROWS_AS(secret_for(tasks_on("localhost"), home), Error);
  REQUIRE(chmod(launch.c_str(), 0700) == 0);
  CHECK(secret_for(tasks_on("localhost"), home) == own);
  const std::string moved = folder.path + "/elsewhere";
  std::filesystem::rename(launch, moved);
  REQUIRE(symlink(moved.c_str(), launch.c_str()) == 0);
  CHECK_THROWS_AS(secret_for(tasks_on("localhost"), home), Error);
}

TEST_CASE("commands that this process starts do not learn the secret") {
  setenv("TRAINCTL_SECRET", "0123456789abcdef", 1);
  forget_secret();
  CHECK(getenv("TRAINCTL_SECRET") == nullptr);
}

}  // namespace
}  // namespace trainctl::agent_test
