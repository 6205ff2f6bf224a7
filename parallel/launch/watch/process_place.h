// What a process does: the states of its threads, the system calls that they wait in, and their functions.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

namespace trainctl {

class CallStacks;

// What a thread does; a value that the kernel does not report is "".
struct ThreadPlace {
  std::string name = {};             // name of the thread for the kernel
  char state = '?';                  // the kernel's state: R runs, S sleeps, D waits for a device, T is stopped, ...
  std::string system_call = {};      // "read of /data/img_0412.jpg", or its number if trainctl does not know its name
  std::string kernel_function = {};  // the kernel function that it waits in (wchan)
  std::vector<std::string> functions = {};  // the innermost first

  bool operator==(const ThreadPlace&) const = default;
};

struct ProcessPlace {
  bool exists = false;
  bool stopped = false;                   // by a signal, such as SIGSTOP
  bool in_debugger = false;               // stopped by a debugger
  std::vector<ThreadPlace> threads = {};  // the main thread first; then those that are not idle, a few at most

  bool operator==(const ProcessPlace&) const = default;
};

// Looks at a process of this host. A thread that runs is stopped for less than a millisecond. Threads that it has not
// reached at the time `end` are left out.
ProcessPlace place_of_process(pid_t process, CallStacks& stacks,
                              std::chrono::steady_clock::time_point end = std::chrono::steady_clock::time_point::max());

// Returns the place as one line without a line end for each thread; `indent` comes before each line.
std::string to_text(const ProcessPlace& place, const std::string& indent);

}  // namespace trainctl
