// Tests that a command that runs through a launch agent reads the standard input of its remote shell.
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <optional>
#include <string>
#include <utility>

#include "core/base/error.h"
#include "core/base/hmac.h"
#include "parallel/launch/agent/agent.h"
#include "parallel/launch/agent/channel.h"
#include "parallel/launch/agent/chief.h"
#include "test/catch.h"
#include "test/parallel/launch/two_tasks.h"

namespace trainctl::remote_input_test {
namespace {

using namespace std::chrono_literals;

constexpr const char* secret = "0123456789abcdef";

// A launch agent in a process of its own, and the chief's lease of it.
class Agent {
 public:
  Agent() : port_(free_port()), process_(fork()) {
    if (process_ == 0) {
      int code = 99;
      try {
        code = serve_as_agent(two_tasks(port_, 1), secret, {.start = 60s, .stop = 60s});
      } catch (const Error&) {
      }
      _exit(code);
    }
    leases_.emplace(two_tasks(port_, 0), secret, 30s);
  }
  ~Agent() {
    leases_->end(0);
    waitpid(process_, nullptr, 0);
  }
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  int port() const { return port_; }

 private:
  int port_;
  pid_t process_;
  std::optional<Leases> leases_;
};

// A remote shell in a process of its own.
class Shell {
 public:
  Shell(const Agent& agent, const std::string& command) {
    std::array<int, 2> input{}, output{};
    REQUIRE(pipe(input.data()) == 0);
    REQUIRE(pipe(output.data()) == 0);
    process_ = fork();
    if (process_ == 0) {
      dup2(input[0], STDIN_FILENO);
      dup2(output[1], STDOUT_FILENO);
      for (const int end : {input[0], input[1], output[0], output[1]}) close(end);
      int code = 99;
      try {
        code = remote_shell(two_tasks(agent.port(), 0), secret, "127.0.0.1", command);
      } catch (const Error&) {
      }
      _exit(code);
    }
    close(input[0]);
    close(output[1]);
    input_ = input[1];
    output_ = output[0];
  }
  ~Shell() {
    close_input();
    close(output_);
  }
  Shell(const Shell&) = delete;
  Shell& operator=(const Shell&) = delete;

  void write(const std::string& text) {
    for (std::size_t had = 0; had < text.size();) {
      const ssize_t count = ::write(input_, text.data() + had, text.size() - had);
      REQUIRE(count > 0);
      had += static_cast<std::size_t>(count);
    }
  }
  void close_input() {
    if (input_ >= 0) close(std::exchange(input_, -1));
  }
  // Reads `bytes` bytes; fewer if the output ends or nothing comes for 20 s.
  std::string read(std::size_t bytes) const {
    std::string text;
    while (text.size() < bytes) {
      pollfd ready{output_, POLLIN, 0};
      if (poll(&ready, 1, 20'000) <= 0) break;
      std::array<char, 65536> buffer{};
      const ssize_t count = ::read(output_, buffer.data(), std::min(buffer.size(), bytes - text.size()));
      if (count <= 0) break;
      text.append(buffer.data(), static_cast<std::size_t>(count));
    }
    return text;
  }
  void kill() const {
    ::kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  int wait() const {
    int status = 0;
    REQUIRE(waitpid(process_, &status, 0) == process_);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t process_ = -1;
  int input_ = -1, output_ = -1;
};

std::string random_letters(std::size_t count) {
  std::string text = random_bytes(count);
  for (char& letter : text) letter = static_cast<char>('a' + static_cast<unsigned char>(letter) % 26);
  return text;
}

TEST_CASE("a command on another host answers each line of its input, and knows the end of the input") {
  const Agent agent;
  Shell shell(agent, "while read -r line; do echo \"got $line\"; done; echo end; exit 3");
  for (int i = 0; i < 3; ++i) {
    const std::string line = random_letters(10);
    shell.write(line + "\n");
    CHECK(shell.read(15) == "got " + line + "\n");
  }
  shell.close_input();
  CHECK(shell.read(100) == "end\n");
  CHECK(shell.wait() == 3);
}

TEST_CASE("input that is larger than a pipe reaches a command that reads late, unchanged") {
  const Agent agent;
  Shell shell(agent, "sleep 0.5; cat");
  const std::string text = random_letters(600'000);
  shell.write(text);
  shell.close_input();
  CHECK((shell.read(text.size() + 1) == text));
  CHECK(shell.wait() == 0);
}

TEST_CASE("a command that does not read ends as without input") {
  const Agent agent;
  Shell shell(agent, "exec <&-; echo ready; sleep 0.5; echo done; exit 4");
  CHECK(shell.read(6) == "ready\n");
  shell.write(random_letters(1000));
  CHECK(shell.read(100) == "done\n");
  CHECK(shell.wait() == 4);
}

TEST_CASE("a command on another host ends with its remote shell") {
  const Agent agent;
  pid_t command = 0;
  {
    Shell shell(agent, "echo $$; exec sleep 1000");
    std::string number;
    for (std::string one; (one = shell.read(1)) != "\n" && !one.empty();) number += one;
    command = std::stoi(number);
    CHECK(kill(command, 0) == 0);
    shell.kill();
  }
  for (int i = 0; i < 200 && kill(command, 0) == 0; ++i) usleep(50'000);
  CHECK(kill(command, 0) != 0);
}

}  // namespace
}  // namespace trainctl::remote_input_test
