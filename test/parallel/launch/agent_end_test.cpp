// Tests the end of a launch agent whose chief is killed, or whose ranks do not stop: no command and no copies of the
// run's state are left on its host.
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <thread>
#include <utility>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/generation.h"
#include "core/base/hmac.h"
#include "core/base/memory_folder.h"
#include "parallel/launch/agent/agent.h"
#include "parallel/launch/agent/chief.h"
#include "test/catch.h"
#include "test/parallel/launch/two_tasks.h"
#include "test/support/time_limit.h"

namespace trainctl::agent_end_test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
namespace fs = std::filesystem;

constexpr const char* secret = "0123456789abcdef";
constexpr auto usual_limit = 1s;

std::string random_name() {
  std::string name = random_bytes(12);
  for (char& letter : name) letter = static_cast<char>('a' + static_cast<unsigned char>(letter) % 26);
  return name;
}

// Calls `work` in a process of its own, whose exit code is the result, or that of an Error with its text in `errors`.
pid_t start(const std::function<int()>& work, const std::string& errors) {
  const pid_t process = fork();
  if (process != 0) return process;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  int code = 99;
  try {
    code = work();
  } catch (const Error& error) {
    std::ofstream(errors) << error.what();
    code = exit_code(error.kind());
  }
  _exit(code);
}

int code_of(pid_t process) {
  int status = 0;
  REQUIRE(waitpid(process, &status, 0) == process);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

bool comes_true(const std::function<bool()>& condition) {
  const auto end = Clock::now() + std::chrono::seconds(test::time_limit);
  while (!condition() && Clock::now() < end) usleep(10'000);
  return condition();
}

// A job on this host: an agent, a chief that holds its lease, and a command that the agent runs for the chief. The
// command writes its process ID and then writes into a folder of copies until it is killed; it ignores SIGTERM.
struct Job {
  std::string launch = format("host-1-{}", random_name()), other = launch + "0";
  std::string copies = memory_folder_of("/tests/" + random_name());
  std::string others_copies = memory_folder_of("/tests/" + random_name());  // of another start of a run
  std::string folder = "/tmp/trainctl-agent-XXXXXX";
  pid_t agent = 0, chief = 0, shell = 0, command = 0;

  // `save_limit`: how long ranks that save may take to stop.
  explicit Job(std::chrono::milliseconds save_limit) {
    REQUIRE(mkdtemp(folder.data()) != nullptr);
    for (const auto& [path, name] : {std::pair{copies, launch}, {others_copies, other}}) {
      create_memory_folder(path, 0);
      std::ofstream(path + "/lock") << "a process\n" << to_line({name, 1});
    }
    const int port = free_port();
    const AgentPatience patience{.start = 60s, .stop = save_limit, .least = {usual_limit, save_limit}};
    agent = start([&] { return serve_as_agent(two_tasks(port, 1), secret, patience); }, folder + "/agent");
    chief = start(
        [&] {
          const Leases leases(two_tasks(port, 0), secret, 30s, launch);
          std::ofstream(folder + "/leased") << "yes";
          for (;;) pause();
          return 0;
        },
        folder + "/chief");
    REQUIRE(comes_true([&] { return fs::exists(folder + "/leased"); }));
    const std::string line =
        format("trap '' TERM USR1; echo $$ >{0}/pid.new; mv {0}/pid.new {0}/pid; while :; do echo x >>{1}/state; done",
               folder, copies);
    shell = start([&] { return remote_shell(two_tasks(port, 0), secret, "127.0.0.1", line); }, folder + "/shell");
    REQUIRE(comes_true([&] { return fs::exists(folder + "/pid") && fs::exists(copies + "/state"); }));
    std::ifstream(folder + "/pid") >> command;
    REQUIRE(command > 0);
  }
  ~Job() {
    for (const pid_t process : {chief, agent, shell}) {
      if (process > 0 && kill(process, SIGKILL) == 0) waitpid(process, nullptr, 0);
    }
    remove_memory_folder(copies);
    remove_memory_folder(others_copies);
    fs::remove_all(folder);
  }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  // Waits for the end of the agent, and checks what it has left.
  int end_of_agent() {
    const int code = code_of(std::exchange(agent, 0));
    CHECK(kill(command, 0) != 0);
    CHECK_FALSE(fs::exists(copies));
    CHECK(fs::exists(others_copies));
    return code;
  }
  std::string error() const {
    std::ifstream file(folder + "/agent");
    return {std::istreambuf_iterator<char>(file), {}};
  }
};

TEST_CASE("when the chief is killed, an agent ends its command and removes the copies of that run alone") {
  Job job(60s);
  kill(job.chief, SIGKILL);
  code_of(std::exchange(job.chief, 0));
  CHECK(job.end_of_agent() == exit_code(ErrorKind::peer));
  CHECK(job.error().starts_with("worker 0 disconnected without reporting how the job ended"));
}

TEST_CASE("an agent ends a command that ignores a request to stop after its time to save") {
  constexpr auto save_limit = 3s;
  Job job(save_limit);
  const auto begin = Clock::now();
  kill(job.agent, SIGTERM);
  usleep(200'000);
  CHECK(kill(job.command, 0) == 0);
  CHECK(job.end_of_agent() == exit_code(ErrorKind::peer));
  CHECK(Clock::now() - begin >= save_limit);
  CHECK(job.error() == "the ranks of this host did not stop within 3 s and were ended");
}

TEST_CASE("a later request to stop gives an agent's command a shorter time, and a second Ctrl-C none") {
  Job job(60s);
  SECTION("a later SIGTERM") {
    kill(job.agent, SIGTERM);
    std::this_thread::sleep_for(2200ms);  // earlier it would be the same request
    const auto begin = Clock::now();
    kill(job.agent, SIGTERM);
    CHECK(job.end_of_agent() == exit_code(ErrorKind::peer));
    CHECK(job.error() == "the ranks of this host did not stop within 1 s and were ended");
    CHECK(Clock::now() - begin >= usual_limit);
  }
  SECTION("a second SIGINT") {
    kill(job.agent, SIGINT);
    usleep(300'000);
    CHECK(kill(job.command, 0) == 0);
    kill(job.agent, SIGINT);
    CHECK(job.end_of_agent() == exit_code(ErrorKind::interrupted));
    CHECK(job.error() == "stopped at once");
  }
}

}  // namespace
}  // namespace trainctl::agent_end_test
