// Chooses how this process communicates with the other ranks.
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

// The ranks of this run, as seen by one of them.
class World {
 public:
  // Joins MPI if this process was started as a rank; otherwise it is the only rank, and MPI is not used. `deadline`:
  // the deadline of all waits for other ranks; zero: no deadline. `late` is called on another thread if the other ranks
  // do not reach MPI_Init within the deadline; it must end the process.
  explicit World(std::chrono::milliseconds deadline = {}, std::function<void()> late = {});

  int rank() const { return communicator_->rank(); }
  int size() const { return communicator_->size(); }
  int local_rank() const { return environment_ ? environment_->local_rank() : 0; }
  int local_size() const { return environment_ ? environment_->local_size() : 1; }
  // The name of the host of each rank.
  const std::vector<std::string>& hosts() const { return hosts_; }
  // The process id of each rank on its host.
  const std::vector<int>& processes() const { return processes_; }
  Communicator& communicator() { return *communicator_; }

  // Waits until all ranks have called this function. Throws Error{peer} after the deadline plus `longer`.
  void gather(std::chrono::milliseconds longer);
  // Ends a successful run; all ranks call it together. If it lasts longer than the deadline, the process ends with
  // `exit_code`. After an error call communicator().abort() instead.
  void finish(int exit_code);

 private:
  std::unique_ptr<MpiEnvironment> environment_;  // null: this is the only rank
  std::unique_ptr<Communicator> communicator_;
  std::vector<std::string> hosts_;
  std::vector<int> processes_;
};

}  // namespace trainctl
