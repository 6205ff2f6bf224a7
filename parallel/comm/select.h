// The only place that chooses how this process meets the other ranks.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/backend/communicator.h"
#include "parallel/comm/environment.h"

namespace trainctl {

// Whether mpirun, or srun with a PMI plugin, has started this process as a rank.
bool started_as_rank();

// The ranks of this run, seen from one of them.
class World {
 public:
  // Joins MPI where this process was started as a rank; else it is alone and MPI stays untouched. `deadline`: of all
  // waits for other ranks; zero: none. `late` is called, on a thread of its own, if the others do not come to MPI_Init
  // within the deadline: it ends the process.
  explicit World(std::chrono::milliseconds deadline = {}, std::function<void()> late = {});

  int rank() const { return communicator_->rank(); }
  int size() const { return communicator_->size(); }
  int local_rank() const { return environment_ ? environment_->local_rank() : 0; }
  int local_size() const { return environment_ ? environment_->local_size() : 1; }
  // Name of the host that rank i runs on.
  const std::vector<std::string>& hosts() const { return hosts_; }
  // The process, on its host, that rank i is.
  const std::vector<int>& processes() const { return processes_; }
  Communicator& communicator() { return *communicator_; }

  // Waits until all ranks have come here. Throws Error{peer} after the deadline and `longer`.
  void gather(std::chrono::milliseconds longer);
  // The end of a clean run, by all ranks together, which lasts no longer than the deadline: then the process ends with
  // `exit_code`. After an error leave by communicator().abort() instead.
  void finish(int exit_code);

 private:
  std::unique_ptr<MpiEnvironment> environment_;  // null: alone
  std::unique_ptr<Communicator> communicator_;
  std::vector<std::string> hosts_;
  std::vector<int> processes_;
};

}  // namespace trainctl
