// Reads from /proc what a process does.
#include "parallel/launch/watch/process_place.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>

#include "core/base/format.h"
#include "core/base/terminal_text.h"
#include "parallel/launch/watch/call_stack.h"

namespace trainctl {
namespace {

constexpr std::size_t most_threads = 4;   // of a process that are described
constexpr std::size_t most_looked = 256;  // of a process that are looked at

// What the first argument of a system call means.
enum class FirstArgument { other, descriptor, path, path_second };

struct KnownCall {
  long number;
  std::string_view name;
  FirstArgument argument = FirstArgument::other;
  bool idle = false;  // whether a thread without work waits in it
};

constexpr std::array known_calls = {
    KnownCall{SYS_read, "read", FirstArgument::descriptor},
    KnownCall{SYS_pread64, "pread", FirstArgument::descriptor},
    KnownCall{SYS_readv, "readv", FirstArgument::descriptor},
    KnownCall{SYS_preadv, "preadv", FirstArgument::descriptor},
    KnownCall{SYS_write, "write", FirstArgument::descriptor},
    KnownCall{SYS_pwrite64, "pwrite", FirstArgument::descriptor},
    KnownCall{SYS_writev, "writev", FirstArgument::descriptor},
    KnownCall{SYS_fsync, "fsync", FirstArgument::descriptor},
    KnownCall{SYS_fdatasync, "fdatasync", FirstArgument::descriptor},
    KnownCall{SYS_flock, "flock", FirstArgument::descriptor},
    KnownCall{SYS_fcntl, "fcntl", FirstArgument::descriptor},
    KnownCall{SYS_ioctl, "ioctl", FirstArgument::descriptor},
    KnownCall{SYS_getdents64, "getdents64", FirstArgument::descriptor},
    KnownCall{SYS_fstat, "fstat", FirstArgument::descriptor},
    KnownCall{SYS_connect, "connect", FirstArgument::descriptor},
    KnownCall{SYS_recvfrom, "recvfrom", FirstArgument::descriptor},
    KnownCall{SYS_recvmsg, "recvmsg", FirstArgument::descriptor},
    KnownCall{SYS_sendto, "sendto", FirstArgument::descriptor},
    KnownCall{SYS_sendmsg, "sendmsg", FirstArgument::descriptor},
    KnownCall{SYS_openat, "openat", FirstArgument::path_second},
    KnownCall{SYS_newfstatat, "stat", FirstArgument::path_second},
    KnownCall{SYS_statx, "statx", FirstArgument::path_second},
    KnownCall{SYS_unlinkat, "unlinkat", FirstArgument::path_second},
    KnownCall{SYS_close, "close", FirstArgument::descriptor},
    KnownCall{SYS_mmap, "mmap"},
    KnownCall{SYS_munmap, "munmap"},
    KnownCall{SYS_wait4, "wait4"},
    KnownCall{SYS_sched_yield, "sched_yield"},
    KnownCall{SYS_waitid, "waitid"},
    KnownCall{SYS_madvise, "madvise"},
    KnownCall{SYS_mprotect, "mprotect"},
    KnownCall{SYS_msync, "msync"},
    KnownCall{SYS_brk, "brk"},
    KnownCall{SYS_rt_sigsuspend, "rt_sigsuspend"},
    KnownCall{SYS_rt_sigtimedwait, "rt_sigtimedwait"},
    KnownCall{SYS_ppoll, "ppoll", FirstArgument::other, true},
    KnownCall{SYS_epoll_pwait, "epoll_pwait", FirstArgument::other, true},
    KnownCall{SYS_futex, "futex", FirstArgument::other, true},
    KnownCall{SYS_clock_nanosleep, "clock_nanosleep", FirstArgument::other, true},
    KnownCall{SYS_nanosleep, "nanosleep", FirstArgument::other, true},
    KnownCall{SYS_accept, "accept", FirstArgument::descriptor, true},
    KnownCall{SYS_accept4, "accept4", FirstArgument::descriptor, true},
#if defined(__x86_64__)
    KnownCall{SYS_pause, "pause"},
    KnownCall{SYS_open, "open", FirstArgument::path},
    KnownCall{SYS_stat, "stat", FirstArgument::path},
    KnownCall{SYS_lstat, "lstat", FirstArgument::path},
    KnownCall{SYS_rename, "rename", FirstArgument::path},
    KnownCall{SYS_poll, "poll", FirstArgument::other, true},
    KnownCall{SYS_select, "select", FirstArgument::other, true},
    KnownCall{SYS_epoll_wait, "epoll_wait", FirstArgument::other, true},
#endif
};

// The contents of a file of a thread: "running", "-1 STACK CODE", or a system call with its arguments and both
// registers.
struct CallState {
  bool known = false, running = false;
  std::optional<long> number;
  std::array<std::uint64_t, 2> arguments{};
  StackRegisters registers;
};

std::string line_of(const std::string& path) {
  std::string line;
  std::getline(std::ifstream(path), line);
  return line;
}

CallState call_state(const std::string& folder) {
  std::istringstream words(line_of(folder + "/syscall"));
  CallState state;
  std::string word;
  if (!(words >> word)) return state;
  state.known = true;
  state.running = word == "running";
  if (state.running) return state;
  if (const long number = std::atol(word.c_str()); number >= 0) state.number = number;
  std::vector<std::uint64_t> values;
  for (words >> std::hex; words >> word;) values.push_back(std::strtoull(word.c_str(), nullptr, 16));
  if (values.size() < 2) return state;
  state.registers = {values[values.size() - 2], values.back()};
  if (values.size() >= 4) state.arguments = {values[0], values[1]};
  return state;
}

// Reads a text of at most a path's length from the memory of a process.
std::string text_in(pid_t process, std::uint64_t address) {
  std::array<char, 512> text{};
  const int memory = open(format("/proc/{}/mem", process).c_str(), O_RDONLY | O_CLOEXEC);
  if (memory < 0) return "";
  const ssize_t got = pread(memory, text.data(), text.size() - 1, static_cast<off_t>(address));
  close(memory);
  return got > 0 ? std::string(text.data()) : "";
}

const KnownCall* find_call(long number) {
  const auto found = std::find_if(known_calls.begin(), known_calls.end(),
                                  [&](const KnownCall& each) { return each.number == number; });
  return found == known_calls.end() ? nullptr : &*found;
}

std::string describe_call(pid_t process, const CallState& state) {
  if (!state.number) return "";
  const KnownCall* call = find_call(*state.number);
  if (call == nullptr) return std::to_string(*state.number);
  std::string about;
  std::error_code ignored;
  if (call->argument == FirstArgument::descriptor) {
    about =
        std::filesystem::read_symlink(format("/proc/{}/fd/{}", process, static_cast<int>(state.arguments[0])), ignored);
  } else if (call->argument == FirstArgument::path) {
    about = text_in(process, state.arguments[0]);
  } else if (call->argument == FirstArgument::path_second) {
    about = text_in(process, state.arguments[1]);
  }
  return about.empty() ? std::string(call->name) : format("{} of {}", call->name, terminal_word(about));
}

// Returns the kernel's letter for a thread's state; 0 if there is no such thread.
char state_letter(const std::string& folder) {
  const std::string line = line_of(folder + "/stat");
  const std::size_t end = line.rfind(')');
  return end == std::string::npos || end + 2 >= line.size() ? '\0' : line[end + 2];
}

bool is_idle(char state, const CallState& call) {
  if (state != 'S') return false;
  const KnownCall* known = call.number ? find_call(*call.number) : nullptr;
  return known != nullptr && known->idle;
}

ThreadPlace place_of_thread(pid_t process, pid_t thread, char state, const CallState& call, CallStacks& stacks) {
  const std::string folder = format("/proc/{}/task/{}", process, thread);
  ThreadPlace place{.name = terminal_word(line_of(folder + "/comm")), .state = state};
  place.system_call = describe_call(process, call);
  place.kernel_function = terminal_word(line_of(folder + "/wchan"));
  if (place.kernel_function == "0") place.kernel_function.clear();
  std::optional<StackRegisters> registers;
  if (call.running) registers = registers_of_running(thread);
  if (call.known && !call.running) registers = call.registers;
  if (registers && registers->code != 0) place.functions = stacks.of(process, *registers);
  return place;
}

}  // namespace

ProcessPlace place_of_process(pid_t process, CallStacks& stacks, std::chrono::steady_clock::time_point end) {
  ProcessPlace place;
  const char main = state_letter(format("/proc/{}/task/{}", process, process));
  if (main == '\0') return place;
  place.exists = main != 'Z' && main != 'X';
  place.stopped = main == 'T';
  place.in_debugger = main == 't';
  std::vector<pid_t> threads = {process};
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(format("/proc/{}/task", process), ignored)) {
    const pid_t thread = std::atoi(entry.path().filename().c_str());
    if (thread != process && threads.size() < most_looked) threads.push_back(thread);
  }
  for (const pid_t thread : threads) {
    if (std::chrono::steady_clock::now() >= end) break;
    const std::string folder = format("/proc/{}/task/{}", process, thread);
    const char state = thread == process ? main : state_letter(folder);
    if (state == '\0') continue;
    const CallState call = call_state(folder);
    // In a stopped process also idle threads have the state T; their system call distinguishes them.
    const bool skipped = thread != process && (is_idle(place.stopped && call.number ? 'S' : state, call) ||
                                               place.threads.size() >= most_threads);
    if (!skipped) place.threads.push_back(place_of_thread(process, thread, state, call, stacks));
  }
  return place;
}

std::string to_text(const ProcessPlace& place, const std::string& indent) {
  if (!place.exists) return indent + "the process has ended";
  if (place.threads.empty()) return indent + "there was no time to look at its threads";
  std::string text;
  for (const ThreadPlace& thread : place.threads) {
    const char* state = thread.state == 'T'   ? "stopped by a signal"
                        : thread.state == 't' ? "stopped by a debugger"
                        : thread.state == 'R' ? "runs"
                        : thread.state == 'D' ? "waits for a device or a file server"
                                              : "waits";
    if (!text.empty()) text += "\n";
    text += format("{}thread {}: {} (state {})", indent, thread.name, state, thread.state);
    if (!thread.system_call.empty()) text += ", in the system call " + thread.system_call;
    if (!thread.kernel_function.empty()) text += format(" (wchan {})", thread.kernel_function);
    std::string functions;
    for (const std::string& function : thread.functions) functions += (functions.empty() ? "" : " < ") + function;
    if (!functions.empty()) text += format("\n{}  {}", indent, functions);
  }
  return text;
}

}  // namespace trainctl
