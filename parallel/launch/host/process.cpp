// Starts processes, looks at them in /proc, and ends all children.
#include "parallel/launch/host/process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "core/base/error.h"
#include "core/base/format.h"

namespace trainctl {
namespace {

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> result;
  for (std::string& word : words) result.push_back(word.data());
  result.push_back(nullptr);
  return result;
}

// Runs in the child after fork. It may only call functions that are safe between fork and exec.
[[noreturn]] void exec_child(const char* program, char** arguments, char** environment, pid_t parent, int input,
                             int output, int errors, int messages) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);
  signal(SIGTTOU, SIG_IGN);  // a background process may still write to the terminal
  // Undoes the settings of this process.
  for (int number : {SIGPIPE, SIGXFSZ, SIGUSR1, SIGINT, SIGTERM}) signal(number, SIG_DFL);
  dup2(input >= 0 ? input : open("/dev/null", O_RDONLY), STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  const int safe = fcntl(messages, F_DUPFD, messages_descriptor + 1);  // descriptor 3 itself may be one of the pipes
  dup2(errors, STDERR_FILENO);
  dup2(safe, messages_descriptor);
  close(safe);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execve(program, arguments, environment);
  _exit(127);
}

// The kernel's state of a process ('T': stopped by a signal), its parent and the kernel's flags (PF_* in Linux'
// sched.h); 0 if there is no such process.
struct ProcessState {
  char state = 0;
  pid_t parent = 0;
  unsigned flags = 0;
};

ProcessState state_of(const std::string& pid) {
  std::ifstream file("/proc/" + pid + "/stat");
  std::string line;
  std::getline(file, line);
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return {};
  std::istringstream rest(line.substr(name_end + 1));
  ProcessState found;
  std::string group, session, terminal, terminal_group;
  rest >> found.state >> found.parent >> group >> session >> terminal >> terminal_group >> found.flags;
  return found;
}

// Whether zombies are children, too: processes whose first thread has ended. Their other threads may still run.
enum class Zombies { no, yes };

// Returns the children of a process.
std::vector<pid_t> children_of(pid_t parent, Zombies zombies = Zombies::no) {
  std::vector<pid_t> children;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const ProcessState found = state_of(name);
    if (found.parent == parent && (found.state != 'Z' || zombies == Zombies::yes)) children.push_back(std::stoi(name));
  }
  return children;
}

// Returns whether a process has a handler for a signal.
bool handles(pid_t pid, int number) {
  std::ifstream file(format("/proc/{}/status", pid));
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("SigCgt:")) continue;
    return (std::stoull(line.substr(line.find_first_not_of(" \t", 7)), nullptr, 16) >> (number - 1) & 1) != 0;
  }
  return false;
}

}  // namespace

std::string own_path() { return std::filesystem::read_symlink("/proc/self/exe"); }

std::string find_program(const std::string& name) {
  const auto runs = [](const std::string& path) {
    return access(path.c_str(), X_OK) == 0 && !std::filesystem::is_directory(path);
  };
  if (name.find('/') != std::string::npos) return runs(name) ? name : "";
  std::istringstream folders(Variables::of_process().text("PATH"));
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (const std::string path = folder + "/" + name; runs(path)) return path;
  }
  return "";
}

ChildProcess start_process(const std::vector<std::string>& command, const Variables::Map& environment, Input input) {
  std::vector<std::string> words = command;
  Variables::Map merged = environment;
  const Variables inherited = Variables::of_process();
  merged.insert(inherited.all().begin(), inherited.all().end());
  std::vector<std::string> variables;
  for (const auto& [name, value] : merged) variables.push_back(name + "=" + value);
  const std::vector<char*> argument_pointers = pointers(words);
  const std::vector<char*> variable_pointers = pointers(variables);
  std::array<int, 2> to_input = {-1, -1};
  std::array<int, 2> output{};
  std::array<int, 2> errors{};
  std::array<int, 2> messages{};
  const pid_t self = getpid();
  pid_t pid = -1;
  const bool has_input = input == Input::empty || pipe2(to_input.data(), O_CLOEXEC) == 0;
  if (has_input && pipe2(output.data(), O_CLOEXEC) == 0 && pipe2(errors.data(), O_CLOEXEC) == 0 &&
      pipe2(messages.data(), O_CLOEXEC) == 0) {
    pid = fork();
  }
  if (pid < 0) {
    throw Error(ErrorKind::resource, format("{} cannot be started: {}", command.front(), std::strerror(errno)));
  }
  if (pid == 0) {
    exec_child(words.front().c_str(), const_cast<char**>(argument_pointers.data()),
               const_cast<char**>(variable_pointers.data()), self, to_input[0], output[1], errors[1], messages[1]);
  }
  setpgid(pid, pid);  // in both processes, since either may run first
  for (const auto& pipe : {output, errors, messages}) close(pipe[1]);
  if (to_input[0] >= 0) close(to_input[0]);
  return {pid, to_input[1], output[0], errors[0], messages[0]};
}

bool has_ended(pid_t pid) {
  constexpr unsigned exiting = 0x4;  // PF_EXITING
  const ProcessState found = state_of(std::to_string(pid));
  return found.state == 0 || found.state == 'Z' || (found.flags & exiting) != 0;
}

bool is_stopped(pid_t pid) { return state_of(std::to_string(pid)).state == 'T'; }

bool has_children(pid_t pid) { return !children_of(pid).empty(); }

std::vector<std::vector<std::string>> commands_of_children(pid_t pid) {
  std::vector<std::vector<std::string>> commands;
  for (pid_t child : children_of(pid)) {
    std::ifstream file(format("/proc/{}/cmdline", child), std::ios::binary);
    std::vector<std::string>& words = commands.emplace_back();
    for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  }
  return commands;
}

void signal_descendants(pid_t pid, int number) {
  for (const pid_t child : children_of(pid)) {
    if (handles(child, number)) kill(child, number);
    signal_descendants(child, number);
  }
}

void kill_children(const std::vector<pid_t>& spared, std::chrono::milliseconds limit) {
  using Clock = std::chrono::steady_clock;
  const pid_t self = getpid();
  const Clock::time_point give_up = Clock::now() + limit;
  for (bool found = true; found && Clock::now() < give_up;) {
    // A zombie whose other threads still run keeps its children.
    std::vector<pid_t> children = children_of(self, Zombies::yes);
    std::erase_if(children,
                  [&](pid_t child) { return std::find(spared.begin(), spared.end(), child) != spared.end(); });
    for (pid_t child : children) kill(child, SIGKILL);
    found = !children.empty();
    // The children of an ended child become children of this process.
    while (waitpid(-1, nullptr, WNOHANG) > 0) found = true;
    if (found) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace trainctl
