// A supervisor in a process of its own, with ranks from ranks.cpp.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "parallel/launch/plan.h"
#include "parallel/launch/supervisor/supervisor.h"

namespace trainctl {

// Calls run_supervised(), logs its error, and returns the exit code.
int supervise(const LaunchPlan& plan, const std::vector<std::string>& command, const Restarts& restarts = {},
              const SupervisionOptions& options = {});

class SupervisedRun {
 public:
  // Starts supervise() with `ranks` ranks, even if there are fewer cores; `behaviour` is the name of a case in
  // ranks.cpp, or a shell script if it begins with "sh: ". `timeout` is cluster.timeout in seconds; the ranks have
  // three times as long to start. Standard output goes to the descriptor `output` if it is given.
  SupervisedRun(int ranks, const std::string& behaviour, double timeout = 600, const Restarts& restarts = {},
                const SupervisionOptions& options = {}, int output = -1);
  ~SupervisedRun();  // ends all processes that are left
  SupervisedRun(const SupervisedRun&) = delete;
  SupervisedRun& operator=(const SupervisedRun&) = delete;

  // Waits until the supervisor has begun; false after the time limit, like those below.
  bool supervises() const;
  // Waits until all ranks have announced themselves.
  bool ranks_run();
  // Waits until no rank is left.
  bool ranks_gone() const;
  // Waits until supervisor or ranks have printed the text.
  bool prints(const std::string& text) const;
  pid_t supervisor() const { return supervisor_; }
  const std::filesystem::path& folder() const { return folder_; }
  void send(int signal) const;  // to the supervisor
  void send_to_rank(int rank, int signal) const;
  void send_to_all(int signal) const;  // to the supervisor, mpirun and all that it has started
  pid_t mpirun() const;
  // The supervisor's exit code; -signal if a signal has ended it, -1000 after the time limit.
  int wait();
  std::string output() const;  // what supervisor and ranks have printed
  // Whether the folder for temporary files is empty, and the folders in shared memory that the supervisor had when
  // ranks_run() saw all ranks are gone.
  bool left_nothing() const;

 private:
  std::vector<pid_t> rank_pids() const;
  std::vector<std::filesystem::path> locked_in_memory() const;

  int ranks_;
  std::vector<std::filesystem::path> in_memory_;
  std::filesystem::path folder_;
  pid_t supervisor_ = -1;
};

}  // namespace trainctl
