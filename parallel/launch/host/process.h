// Starts and observes other processes of this host: mpirun as a child process, and its own children.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "parallel/launch/variables.h"

namespace trainctl {

// A running program, the three pipes from which its output is read, and the pipe of its input if it has one.
struct ChildProcess {
  pid_t pid = -1;
  int input = -1;     // standard input of the process
  int output = -1;    // standard output of the process and its descendants
  int errors = -1;    // standard error of the process and its descendants
  int messages = -1;  // output of the process to descriptor 3
};

// The descriptor to which a process writes its messages.
inline constexpr int messages_descriptor = 3;

// Returns the path of the running program.
std::string own_path();

// Finds a program in PATH, as a shell does; returns "" if the program is not found.
std::string find_program(const std::string& name);

// The standard input of a program: empty, or a pipe that the caller writes.
enum class Input { empty, pipe };

// Starts a program in its own process group, with the environment of this process, changed by `environment`. The
// program receives SIGKILL when the calling thread ends. Throws Error{resource}.
ChildProcess start_process(const std::vector<std::string>& command, const Variables::Map& environment,
                           Input input = Input::empty);

// Returns whether a process has running children.
bool has_children(pid_t pid);

// Returns whether a process of this host has ended, or is being ended by the kernel. A process that is being ended has
// closed its files already, so that its peers may know of its end earlier than its parent.
bool has_ended(pid_t pid);

// Returns whether a process of this host is suspended by a signal.
bool is_stopped(pid_t pid);

// Returns the command lines of a process's running children, divided into words.
std::vector<std::vector<std::string>> commands_of_children(pid_t pid);

// Sends a signal to all descendants of a process that have a handler for it.
void signal_descendants(pid_t pid, int number);

// Kills the children of this process and their orphaned children, until no child is left except those in `spared`, or
// until the time is over: a process may hang in the kernel. Requires PR_SET_CHILD_SUBREAPER.
void kill_children(const std::vector<pid_t>& spared = {},
                   std::chrono::milliseconds limit = std::chrono::milliseconds(10'000));

// The largest number of bytes that are kept of the output of a remote shell or a child process.
inline constexpr std::size_t max_remote_text = 1 << 20;

// Appends `more` to `text`. If the text becomes longer than `limit` bytes, its middle is removed: an answer begins with
// the requested information, and a failure ends with its reason.
inline void append_within(std::string& text, std::string_view more, std::size_t limit) {
  text.append(more);
  if (text.size() > limit) text.erase(limit / 2, text.size() - limit);
}

}  // namespace trainctl
