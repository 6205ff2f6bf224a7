// Other processes of this host: mpirun as a child process, its own children, and what they say.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "parallel/launch/variables.h"

namespace trainctl {

// A running program whose output comes back in three pipes.
struct ChildProcess {
  pid_t pid = -1;
  int output = -1;    // what it and its own children write to standard output
  int errors = -1;    // what it and its own children write to standard error
  int messages = -1;  // what it writes to descriptor 3
};

inline constexpr int messages_descriptor = 3;

// The path of the running program.
std::string own_path();

// The program's path as a shell finds it, or "".
std::string find_program(const std::string& name);

// Starts a program in a process group of its own, with the environment of this process and `environment`
// on top and an empty standard input. It gets SIGKILL when the calling thread ends. Throws Error{resource}.
ChildProcess start_process(const std::vector<std::string>& command, const Variables::Map& environment);

// Whether a process has children that live.
bool has_children(pid_t pid);

// Whether a process of this host was stopped by a signal, and stands.
bool is_stopped(pid_t pid);

// The command lines, as words, of a process's children that live.
std::vector<std::vector<std::string>> commands_of_children(pid_t pid);

// Sends a signal to the processes that a process has started, directly or not, and that handle it.
void signal_descendants(pid_t pid, int number);

// SIGKILL to the children of this process and those they leave behind, until none is left. Needs
// PR_SET_CHILD_SUBREAPER.
void kill_children();

// The bytes that are kept of what a remote shell or a child process says.
inline constexpr std::size_t most_remote_text = 1 << 20;

// Appends `more` to `text`. Of a text that becomes longer than `most` bytes the first half of them stays, and the last:
// an answer begins with what was asked for, and a failure ends with its reason.
inline void append_within(std::string& text, std::string_view more, std::size_t most) {
  text.append(more);
  if (text.size() > most) text.erase(most / 2, text.size() - most);
}

}  // namespace trainctl
