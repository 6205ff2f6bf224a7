// Tests the agents on hosts and the supervisor's watch with real ranks: what is reported of ranks that hang, and that a
// lease ends ranks that are cut off.
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <sstream>
#include <thread>

#include "core/base/format.h"
#include "core/base/memory_folder.h"
#include "parallel/comm/environment.h"
#include "parallel/launch/host/process.h"
#include "parallel/launch/variables.h"
#include "parallel/launch/watch/host_agent.h"
#include "parallel/launch/watch/host_watch.h"
#include "parallel/launch/watch/messages.h"
#include "test/catch.h"
#include "test/parallel/launch/supervised_run.h"

namespace trainctl::host_watch_test {
namespace {

namespace fs = std::filesystem;

SupervisionOptions watched(double seconds) {
  return {.watch = {.hang_timeout = Seconds{seconds}, .agent = {TRAINCTL_BINARY, host_agent_command}}};
}

bool comes_true(const std::function<bool()>& condition, double seconds = 30) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// The agents among the children of a supervisor.
std::vector<pid_t> agents_of(pid_t supervisor) {
  std::ifstream file(format("/proc/{0}/task/{0}/children", supervisor));
  std::vector<pid_t> agents;
  for (pid_t pid = 0; file >> pid;) {
    std::ifstream command(format("/proc/{}/cmdline", pid), std::ios::binary);
    std::ostringstream words;
    words << command.rdbuf();
    if (contains(words.str(), host_agent_command)) agents.push_back(pid);
  }
  return agents;
}

// Starts ranks that train, and waits until the watch has measured steps.
void train(SupervisedRun& run) {
  REQUIRE(run.ranks_run());
  REQUIRE(comes_true([&] { return agents_of(run.supervisor()).size() == 1; }));
  std::this_thread::sleep_for(std::chrono::seconds(4));
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

TEST_CASE("a rank that a signal has stopped is named, and the flight records are kept", "[waits]") {
  SupervisedRun run(3, "rank that trains and records", 600, {}, watched(3));
  train(run);
  const auto begin = std::chrono::steady_clock::now();
  run.send_to_rank(1, SIGSTOP);
  CHECK(run.wait() == 5);
  CHECK(seconds_since(begin) > 3);
  CHECK(seconds_since(begin) < 13);
  INFO(run.output());
  CHECK(contains(run.output(), "bucket 3: waiting for rank 1 on "));
  CHECK(contains(run.output(), ": stopped by a signal "));
  CHECK(contains(run.output(), "the threads of rank 1 (process "));
  CHECK(run.ranks_gone());
  CHECK(run.left_nothing());
  for (const char* record : {"rank-00000", "rank-00001", "rank-00002"}) {
    CHECK(fs::file_size(run.folder() / "run/flight" / record) > 1000);
  }
}

TEST_CASE("a rank that reads data that does not come is named with the file, also after its agent was killed",
          "[waits]") {
  SupervisedRun run(2, "rank that trains and records", 600, {}, watched(6));
  train(run);
  kill(agents_of(run.supervisor()).at(0), SIGKILL);
  REQUIRE(mkfifo((run.folder() / "fifo").c_str(), 0600) == 0);
  CHECK(run.wait() == 5);
  INFO(run.output());
  CHECK(contains(run.output(), "bucket 3: waiting for rank 1 on "));
  CHECK(contains(run.output(), ": reading img_0412.jpg for "));
  CHECK(contains(run.output(), "in the system call read of " + (run.folder() / "fifo").string()));
  CHECK(run.ranks_gone());
  CHECK(run.left_nothing());
}

TEST_CASE("a run that is suspended as a whole goes on, and ends as usual", "[waits]") {
  SupervisedRun run(2, "rank that trains and records", 600, {}, watched(3));
  train(run);
  run.send_to_all(SIGSTOP);
  std::this_thread::sleep_for(std::chrono::seconds(6));
  run.send_to_all(SIGCONT);
  std::this_thread::sleep_for(std::chrono::seconds(5));
  run.send(SIGTERM);
  CHECK(run.wait() == 75);
  CHECK_FALSE(contains(run.output(), "waiting for rank"));
  CHECK(run.left_nothing());
}

TEST_CASE("all ranks that are stopped by hand are not blamed", "[waits]") {
  SupervisedRun run(2, "rank that trains and records", 600, {}, watched(3));
  train(run);
  for (const int rank : {0, 1}) run.send_to_rank(rank, SIGSTOP);
  REQUIRE(run.prints("all ranks are stopped by a signal"));
  for (const int rank : {0, 1}) run.send_to_rank(rank, SIGCONT);
  std::this_thread::sleep_for(std::chrono::seconds(2));
  run.send(SIGTERM);
  CHECK(run.wait() == 75);
}

// An agent that is not a child of a supervisor, as on another host, with one process as its rank.
class RemoteAgent {
 public:
  explicit RemoteAgent(int lease) {
    std::string name = fs::temp_directory_path() / "watch-test-XXXXXX";
    folder_ = mkdtemp(name.data());
    rank_ = start_process({own_path(), "process that records"}, {{std::string(flight_variable), folder_}});
    REQUIRE(comes_true([&] { return fs::exists(folder_ + "/rank-00000"); }));
    agent_ = start_process({TRAINCTL_BINARY, host_agent_command, "--folder", folder_, "--mark", "mark", "--host", "h1",
                            "--lease", std::to_string(lease)},
                           {}, Input::pipe);
  }
  ~RemoteAgent() {
    for (const ChildProcess& child : {rank_, agent_}) {
      if (kill(-child.pid, SIGKILL) == 0) waitpid(child.pid, nullptr, 0);
    }
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
    remove_memory_folder(copies());
  }
  RemoteAgent(const RemoteAgent&) = delete;
  RemoteAgent& operator=(const RemoteAgent&) = delete;

  void send(WatchRequest::Kind kind) const {
    const std::string line = to_line({kind});
    REQUIRE(write(agent_.input, line.data(), line.size()) == static_cast<ssize_t>(line.size()));
  }
  void hang_up() {
    close(agent_.input);
    close(agent_.output);
  }
  bool rank_runs() const { return !has_ended(rank_.pid); }
  bool runs() const { return !has_ended(agent_.pid); }
  bool has_folder() const { return fs::exists(folder_); }
  // The folder of the rank's copies in shared memory.
  std::string copies() const { return memory_folder_of(folder_); }

 private:
  std::string folder_;
  ChildProcess rank_, agent_;
};

TEST_CASE("an agent without a message from its supervisor ends the ranks of its host and itself", "[waits]") {
  RemoteAgent agent(2000);
  const bool hangs_up = GENERATE(false, true);
  for (int i = 0; i < 8; ++i) {
    agent.send(WatchRequest::Kind::alive);
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
  }
  CHECK(agent.rank_runs());
  CHECK(fs::exists(agent.copies()));
  if (hangs_up) agent.hang_up();
  const auto begin = std::chrono::steady_clock::now();
  REQUIRE(comes_true([&] { return !agent.runs(); }));
  CHECK(seconds_since(begin) > 1);
  CHECK(seconds_since(begin) < 6);
  CHECK(comes_true([&] { return !agent.rank_runs(); }));
  CHECK_FALSE(agent.has_folder());
  CHECK_FALSE(fs::exists(agent.copies()));
}

TEST_CASE("an agent whose lease is over leaves the copies that a later start has taken over") {
  RemoteAgent agent(100);
  std::ofstream(agent.copies() + "/lock") << "a later start\n";
  REQUIRE(comes_true([&] { return !agent.runs(); }));
  CHECK(fs::exists(agent.copies()));
}

// The watch of a supervisor on another "host" of this machine, which a script reaches instead of ssh, and a process
// with a flight record as its rank.
class WatchedElsewhere {
 public:
  explicit WatchedElsewhere(std::chrono::milliseconds lease) {
    std::string name = fs::temp_directory_path() / "watch-test-XXXXXX";
    folder_ = mkdtemp(name.data());
    const std::string shell = folder_ + "/shell", records = folder_ + "/records";
    std::ofstream(shell) << "#!/bin/sh\nshift\nexec sh -c \"$*\"\n";
    fs::permissions(shell, fs::perms::owner_all);
    for (const char* variable : {"OMPI_MCA_plm_rsh_agent", "PRTE_MCA_plm_ssh_agent", "HYDRA_LAUNCHER_EXEC"}) {
      setenv(variable, shell.c_str(), 1);
    }
    fs::create_directory(records);
    rank_ = start_process({own_path(), "process that records"}, {{std::string(flight_variable), records}});
    REQUIRE(comes_true([&] { return fs::exists(records + "/rank-00000"); }));
    plan_.one_host = plan_.first_rank_here = false;
    plan_.hosts = {{"h1", 1}};
    plan_.other_hosts = {"h1"};
    plan_.mpi = mpi_library();
    SupervisionOptions options = watched(3);
    options.watch.lease = lease;
    watch_.emplace(plan_, options.watch, records);
    watch_->start();
    REQUIRE(comes_true([&] { return fs::exists(records + "/agent-h1"); }));
  }
  ~WatchedElsewhere() {
    watch_.reset();
    if (kill(-rank_.pid, SIGKILL) == 0) waitpid(rank_.pid, nullptr, 0);
    for (const char* variable : {"OMPI_MCA_plm_rsh_agent", "PRTE_MCA_plm_ssh_agent", "HYDRA_LAUNCHER_EXEC"}) {
      unsetenv(variable);
    }
    remove_memory_folder(memory_folder_of(folder_ + "/records"));  // which the rank has created
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  WatchedElsewhere(const WatchedElsewhere&) = delete;
  WatchedElsewhere& operator=(const WatchedElsewhere&) = delete;

  HostWatch& watch() { return *watch_; }
  bool rank_runs() const { return !has_ended(rank_.pid); }

 private:
  std::string folder_;
  LaunchPlan plan_;
  ChildProcess rank_;
  std::optional<HostWatch> watch_;
};

TEST_CASE("the leases hold while the supervisor waits for something else, and while it is suspended", "[waits]") {
  WatchedElsewhere host(std::chrono::milliseconds(5000));
  const bool suspends = GENERATE(false, true);
  if (suspends) host.watch().pause();
  std::this_thread::sleep_for(std::chrono::milliseconds(7000));
  CHECK(host.rank_runs());
  CHECK_FALSE(host.watch().check(true));
  CHECK(host.rank_runs());
}

TEST_CASE("an agent whose attempt is over leaves the processes alone, and removes the folder") {
  RemoteAgent agent(2000);
  agent.send(WatchRequest::Kind::end);
  REQUIRE(comes_true([&] { return !agent.runs(); }));
  CHECK(agent.rank_runs());
  CHECK_FALSE(agent.has_folder());
  CHECK(fs::exists(agent.copies()));
}

}  // namespace
}  // namespace trainctl::host_watch_test
