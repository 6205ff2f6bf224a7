// Starts the program as a process and watches it.
#include "test/support/command.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "core/base/format.h"

namespace fs = std::filesystem;

namespace trainctl::test {
namespace {

// The value of a variable in the environment of a process; "" if it is not set or the process has ended.
std::string variable_of(const std::string& environment, const std::string& name) {
  const std::string wanted = name + "=";
  for (std::size_t at = 0; at < environment.size(); at = environment.find('\0', at) + 1) {
    if (environment.compare(at, wanted.size(), wanted) == 0) return environment.c_str() + at + wanted.size();
    if (environment.find('\0', at) == std::string::npos) break;
  }
  return "";
}

std::string environment_of(pid_t pid) { return read_file(format("/proc/{}/environ", pid)); }

bool is_zombie(pid_t pid) {
  const std::string line = read_file(format("/proc/{}/stat", pid));
  const std::size_t name_end = line.rfind(')');
  return name_end == std::string::npos || line[name_end + 2] == 'Z';
}

}  // namespace

Folder::Folder() {
  std::string name = fs::temp_directory_path() / "trainctl-run-XXXXXX";
  path_ = mkdtemp(name.data());
}

Folder::~Folder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string Folder::write(const std::string& name, const std::string& text) const {
  fs::create_directories((path_ / name).parent_path());
  std::ofstream(path_ / name, std::ios::binary) << text;
  return path_ / name;
}

std::string read_file(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

bool comes_true(const std::function<bool()>& condition, int seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
  }
  return true;
}

Command::Command(const Folder& folder, const std::vector<std::string>& arguments, const std::string& inside,
                 const std::vector<std::string>& variables) {
  static std::atomic<int> number{0};
  mark_ = format("{}-{}", getpid(), number++);
  output_ = folder / ("output-" + mark_);
  fs::create_directories(folder / "temporary");
  int started[2];  // is closed when the program starts
  if (pipe2(started, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  pid_ = fork();
  if (pid_ != 0) {
    close(started[1]);
    char none = 0;
    while (read(started[0], &none, 1) < 0 && errno == EINTR) {
    }
    close(started[0]);
    return;
  }
  setpgid(0, 0);
  for (const auto& [descriptor, ending] : {std::pair(STDOUT_FILENO, ".out"), std::pair(STDERR_FILENO, ".err")}) {
    dup2(open((output_ + ending).c_str(), O_CREAT | O_WRONLY | O_APPEND, 0600), descriptor);
  }
  dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
  for (int signal_number : {SIGINT, SIGTERM, SIGHUP}) signal(signal_number, SIG_DFL);  // Catch2 has set handlers
  setenv("TMPDIR", (folder / "temporary").c_str(), 1);
  setenv("XDG_CACHE_HOME", (folder / "cache").c_str(), 1);
  setenv("TRAINCTL_TEST_COMMAND", mark_.c_str(), 1);
  for (const std::string& variable : variables) putenv(strdup(variable.c_str()));
  if (chdir((folder / inside).c_str()) != 0) _exit(126);
  std::vector<char*> words = {strdup(TRAINCTL_BINARY)};
  for (const std::string& argument : arguments) words.push_back(strdup(argument.c_str()));
  words.push_back(nullptr);
  execv(TRAINCTL_BINARY, words.data());
  _exit(127);
}

Command::~Command() {
  for (pid_t pid : processes()) kill(pid, SIGKILL);
  if (pid_ > 0) waitpid(pid_, nullptr, 0);
}

int Command::wait() {
  int status = 0;
  if (!comes_true([&] { return waitpid(pid_, &status, WNOHANG) != 0; })) return -1000;
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

void Command::send(int signal) const { kill(pid_, signal); }

void Command::send_to_all(int signal) const {
  for (const pid_t pid : processes()) kill(pid, signal);
}

bool Command::starts(const std::string& word) const {
  const std::vector<pid_t> all = processes();
  return std::any_of(all.begin(), all.end(), [&](pid_t pid) {
    const std::string words = '\0' + read_file(format("/proc/{}/cmdline", pid));
    return words.find('\0' + word + '\0') != std::string::npos;
  });
}

bool Command::blocks(int signal) const {
  const std::string name = "SigBlk:";  // followed by a mask in hexadecimal digits; bit 0 is signal 1
  const std::string status = read_file(format("/proc/{}/status", pid_));
  const std::size_t at = status.find(name);
  if (at == std::string::npos) return false;
  return (std::stoull(status.substr(at + name.size()), nullptr, 16) >> (signal - 1) & 1) != 0;
}

std::vector<pid_t> Command::processes() const {
  std::vector<pid_t> found;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc")) {
    const pid_t pid = std::atoi(entry.path().filename().c_str());
    if (pid > 0 && variable_of(environment_of(pid), "TRAINCTL_TEST_COMMAND") == mark_ && !is_zombie(pid)) {
      found.push_back(pid);
    }
  }
  return found;
}

std::map<int, pid_t> Command::ranks() const {
  std::map<int, pid_t> found;
  for (pid_t pid : processes()) {
    const std::string rank = variable_of(environment_of(pid), "OMPI_COMM_WORLD_RANK");
    if (!rank.empty()) found[std::stoi(rank)] = pid;
  }
  return found;
}

bool Command::left_no_process() const {
  return comes_true([&] { return processes().empty(); }, 10);
}

bool Command::says(const std::string& text, int times) const {
  // What the command has written before its end is read after its end was seen.
  comes_true([&] {
    const bool last_look = ended();
    return count(errors(), text) >= times || last_look;
  });
  return count(errors(), text) >= times;
}

bool Command::ended() const {
  siginfo_t info{};
  return pid_ < 0 ||
         (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0);
}

Finished trainctl(const Folder& folder, const std::vector<std::string>& arguments, const std::string& inside) {
  Command command(folder, arguments, inside);
  const int code = command.wait();
  return {code, command.out(), command.errors()};
}

std::vector<Json> events(const std::string& run_directory, const std::string& event) {
  std::ifstream file(run_directory + "/metrics.jsonl");
  std::vector<Json> found;
  for (std::string line; std::getline(file, line);) {
    if (file.eof()) break;  // an incomplete line, which is being written
    Json json = Json::parse(line);
    if (event.empty() || json.at("event") == event) found.push_back(std::move(json));
  }
  return found;
}

std::map<std::int64_t, double> step_losses(const std::string& run_directory) {
  std::map<std::int64_t, double> losses;
  for (const Json& step : events(run_directory, "step")) losses[step.at("step")] = step.at("loss");
  return losses;
}

std::string tail(const std::string& text) {
  std::size_t at = text.size();
  for (int lines = 0; lines < 12 && at != std::string::npos && at > 0; ++lines) at = text.rfind('\n', at - 1);
  return at == std::string::npos ? text : text.substr(at);
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace trainctl::test
