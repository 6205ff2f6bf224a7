// The file `supervisor` in a run directory. The supervisor of the run's ranks keeps it locked from its first look at
// the directory to its own end, so that no other run begins there while no rank runs: between a failure or a resize and
// the next start of the ranks.
#pragma once

#include <optional>
#include <string>

namespace trainctl {

// The name of this host; "" if the system does not tell it.
std::string host_name();

// Returns how lock files name this process: "process 123 on node1".
std::string process_on_host();

// Returns the host of a supervisor with this name (Generation::launch), "HOST-PROCESS-TIME"; "" for another text. A
// host's name may contain hyphens.
std::string host_of_launch(const std::string& launch);

// Whether a supervisor's name (Generation::launch) says that it runs on this host.
bool is_launch_of_this_host(const std::string& launch);

// The lock, which the supervisor holds. It is also released when the process ends in any way.
class SupervisorLock {
 public:
  SupervisorLock() = default;
  ~SupervisorLock() { release(); }
  SupervisorLock(const SupervisorLock&) = delete;
  SupervisorLock& operator=(const SupervisorLock&) = delete;

  // Takes the lock of a run directory for the supervisor with the name `launch` (core/base/generation.h), instead of
  // the lock of another directory. Does nothing if it is held already and the file is still there. Returns whether it
  // is held: another supervisor may hold it, another process may just look at it, or the directory may not be writable.
  // The file stays when the lock is released.
  bool take(const std::string& run_directory, const std::string& launch);
  void release();

 private:
  std::string directory_;
  int descriptor_ = -1;
};

// A supervisor that holds the lock of a run directory, as its file names it.
struct RunningSupervisor {
  std::string process;  // "process 123 on node1"
  std::string launch;   // its name, see Generation
};

// Returns the supervisor that holds the lock of a run directory, on this host or on another host of the same file
// system; empty if none does.
std::optional<RunningSupervisor> supervisor_of(const std::string& run_directory);

// Returns the name of the supervisor that has taken the lock of a run directory last, whether or not it still runs; ""
// if none has.
std::string last_supervisor_of(const std::string& run_directory);

}  // namespace trainctl
