// Forks a supervisor, and watches it and its ranks from outside.
#include "test/parallel/launch/supervised_run.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <sstream>
#include <thread>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/log.h"
#include "core/base/memory_folder.h"
#include "parallel/launch/host/process.h"
#include "test/parallel/launch/listening.h"
#include "test/support/time_limit.h"

namespace trainctl {
namespace {

bool within_limit(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(test::time_limit);
  while (std::chrono::steady_clock::now() < end) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return condition();
}

bool is_alive(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(file, line);
  const std::size_t name_end = line.rfind(')');
  return name_end != std::string::npos && line[name_end + 2] != 'Z';
}

LaunchPlan plan_for(int ranks, double timeout) {
  ClusterOptions options;
  options.timeout = Seconds{timeout};
  options.start_timeout = {Seconds{3 * timeout}};
  LaunchRequest request = launch_request(options, {std::to_string(ranks)});
  request.slurm.reset();
  return plan_launch(request);
}

}  // namespace

int supervise(const LaunchPlan& plan, const std::vector<std::string>& command, const Restarts& restarts,
              const SupervisionOptions& options) {
  signal(SIGPIPE, SIG_IGN);  // as in main
  const Failure end = run_supervised(plan, command, options, restarts).end;
  if (!end.message.empty()) log::error(end.message);
  return end.exit_code;
}

SupervisedRun::SupervisedRun(int ranks, const std::string& behaviour, double timeout, const Restarts& restarts,
                             const SupervisionOptions& options, int output)
    : ranks_(ranks) {
  std::string name = std::filesystem::temp_directory_path() / "launch-test-XXXXXX";
  folder_ = mkdtemp(name.data());
  std::filesystem::create_directory(folder_ / "temporary");
  supervisor_ = fork();
  if (supervisor_ != 0) return;
  const int file = open((folder_ / "output").c_str(), O_CREAT | O_WRONLY | O_APPEND, 0600);
  dup2(output >= 0 ? output : file, STDOUT_FILENO);
  dup2(file, STDERR_FILENO);
  for (int number : {SIGINT, SIGTERM, SIGHUP}) signal(number, SIG_DFL);  // Catch2 has handlers
  setenv("TMPDIR", (folder_ / "temporary").c_str(), 1);
  setenv("LAUNCH_TEST_FOLDER", folder_.c_str(), 1);
  try {
    const bool script = behaviour.starts_with("sh: ");
    _exit(supervise(plan_for(ranks, timeout),
                    script ? std::vector<std::string>{"/bin/sh", "-c", behaviour.substr(4)}
                           : std::vector<std::string>{own_path(), behaviour},
                    restarts, options));
  } catch (const Error& error) {
    dprintf(STDERR_FILENO, "%s\n", error.what());
    _exit(exit_code(error.kind()));
  }
}

SupervisedRun::~SupervisedRun() {
  if (supervisor_ > 0) {
    kill(supervisor_, SIGKILL);
    waitpid(supervisor_, nullptr, 0);
  }
  for (pid_t pid : rank_pids()) kill(pid, SIGKILL);
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::vector<pid_t> SupervisedRun::rank_pids() const {
  std::vector<pid_t> pids;
  for (int rank = 0; rank < ranks_; ++rank) {
    std::ifstream file(folder_ / ("rank-" + std::to_string(rank)));
    if (pid_t pid = 0; file >> pid) pids.push_back(pid);
  }
  return pids;
}

bool SupervisedRun::ranks_run() {
  if (!within_limit([&] { return static_cast<int>(rank_pids().size()) == ranks_; })) return false;
  in_memory_ = locked_in_memory();
  return true;
}

// The folders in shared memory that the supervisor has locked.
std::vector<std::filesystem::path> SupervisedRun::locked_in_memory() const {
  std::vector<std::filesystem::path> folders;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(format("/proc/{}/fd", supervisor_), none)) {
    const std::filesystem::path target = std::filesystem::read_symlink(entry.path(), none);
    if (target.string().starts_with(format("{}/trainctl-", shared_memory_folder))) folders.push_back(target);
  }
  return folders;
}

bool SupervisedRun::ranks_gone() const {
  return within_limit([&] {
    for (pid_t pid : rank_pids()) {
      if (is_alive(pid)) return false;
    }
    return true;
  });
}

void SupervisedRun::send(int signal) const { kill(supervisor_, signal); }

void SupervisedRun::send_to_rank(int rank, int signal) const {
  kill(rank_pids().at(static_cast<std::size_t>(rank)), signal);
}

void SupervisedRun::send_to_all(int signal) const {
  for (const pid_t pid : family_of(supervisor_)) kill(pid, signal);
}

// The only child of the supervisor.
pid_t SupervisedRun::mpirun() const {
  std::ifstream file(format("/proc/{0}/task/{0}/children", supervisor_));
  pid_t pid = -1;
  file >> pid;
  return pid;
}

int SupervisedRun::wait() {
  int status = 0;
  if (!within_limit([&] { return waitpid(supervisor_, &status, WNOHANG) != 0; })) return -1000;
  supervisor_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

std::string SupervisedRun::output() const {
  std::ostringstream text;
  text << std::ifstream(folder_ / "output").rdbuf();
  return text.str();
}

bool SupervisedRun::prints(const std::string& text) const {
  return within_limit([&] { return output().find(text) != std::string::npos; });
}

bool SupervisedRun::supervises() const {
  return within_limit([&] { return !std::filesystem::is_empty(folder_ / "temporary"); });
}

bool SupervisedRun::left_nothing() const {
  const auto exists = [](const std::filesystem::path& path) { return std::filesystem::exists(path); };
  return std::filesystem::is_empty(folder_ / "temporary") && std::ranges::none_of(in_memory_, exists);
}

}  // namespace trainctl
