// The functions that a thread of another process is in, without a debugger.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace trainctl {

class ElfFunctions;

// The two registers from which a stack is read.
struct StackRegisters {
  std::uint64_t stack = 0, code = 0;
};

// Reads the registers of a thread that runs on a processor: stops it for a moment as a debugger would. Empty if the
// kernel does not permit that.
std::optional<StackRegisters> registers_of_running(pid_t thread);

// Finds the callers of a function by the return addresses on the stack: a word is one if it points to the byte after a
// call instruction, and among these the next caller is the one that calls the function found last. Functions that the
// compiler has inlined are missing, and after an indirect call a function may be named that has returned already. The
// symbols of files are kept for later calls. Only for x86-64; elsewhere a stack has its innermost function only.
class CallStacks {
 public:
  CallStacks();
  ~CallStacks();
  CallStacks(const CallStacks&) = delete;
  CallStacks& operator=(const CallStacks&) = delete;

  // Returns the names of the functions, the innermost first. A function without a symbol is named by its file and the
  // offset there. Empty if the memory of the process cannot be read.
  std::vector<std::string> of(pid_t process, const StackRegisters& registers);

 private:
  const ElfFunctions& functions_of(pid_t process, const std::string& path);

  std::map<std::string, std::unique_ptr<ElfFunctions>> files_;
};

}  // namespace trainctl
