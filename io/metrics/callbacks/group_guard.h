// The end of commands whose program was killed: a process beside the program waits for that and ends them.
#pragma once

#include <sys/types.h>

namespace trainctl {

// While it lives, the process group that it guards is killed as soon as this process is gone, however that ends. A
// shell beside this process sees that by the end of a pipe. Where the shell cannot be started nothing is guarded.
class GroupGuard {
 public:
  GroupGuard();
  ~GroupGuard();
  GroupGuard(const GroupGuard&) = delete;
  GroupGuard& operator=(const GroupGuard&) = delete;

  void guard(pid_t group);
  // Until the next guard() there is no group.
  void release();

 private:
  void tell(const char* line);

  int pipe_ = -1;  // to the shell: a line for each change
  pid_t shell_ = -1;
};

}  // namespace trainctl
