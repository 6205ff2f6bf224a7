// MPI of this process, from its first call to its last.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/backend/attendance.h"

namespace trainctl {

// The MPI libraries whose launchers are known.
enum class MpiLibrary { openmpi4, openmpi5, mpich, other };

// The library that has this text for MPI_Get_library_version().
MpiLibrary mpi_library_of(std::string_view text);
// The one that this program runs with, which need not be the one that it was built with: OpenMPI 5 takes the place of
// OpenMPI 4.
MpiLibrary mpi_library();

// "Open MPI 4.1.4" that this program is built with, and what its library says of itself. Before MPI starts, too.
struct MpiVersions {
  std::string built, found;
};
MpiVersions mpi_versions();

// One object in a process that mpirun, or srun with PMI, has started; made before any other thread. All ranks make it
// together.
class MpiEnvironment {
 public:
  // `deadline`: of all waits for other ranks, here and in the communicators; zero: none. Throws Error{peer} when MPI
  // does not start or ranks do not come, Error{resource} when MPI does not support calls from several threads.
  // MPI_Init waits for all ranks, and nothing ends it: `late` is called, on a thread of its own, if it lasts longer
  // than the deadline.
  explicit MpiEnvironment(std::chrono::milliseconds deadline = {}, std::function<void()> late = {});
  MpiEnvironment(const MpiEnvironment&) = delete;
  MpiEnvironment& operator=(const MpiEnvironment&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  // Among the ranks that share this host's memory.
  int local_rank() const { return local_rank_; }
  int local_size() const { return local_size_; }
  // Name of the host that rank i runs on.
  const std::vector<std::string>& hosts() const { return hosts_; }
  // The process, on its host, that rank i is.
  const std::vector<int>& processes() const { return processes_; }

  // Of all ranks.
  const std::shared_ptr<Attendance>& attendance() const { return attendance_; }

  // Waits until all ranks have come here. A rank may come later than the others by its deadline and `longer`; throws
  // Error{peer} after that.
  void gather(std::chrono::milliseconds longer);
  // The end of a clean run, by all ranks together. Without it the process may only leave with a non-zero code, at which
  // mpirun ends the other ranks. A rank that is stuck in its own end keeps the others for the deadline: then this
  // process ends with `exit_code`.
  void finalize(int exit_code = 0);

 private:
  std::shared_ptr<Attendance> attendance_;
  int rank_ = 0;
  int size_ = 1;
  int local_rank_ = 0;
  int local_size_ = 1;
  std::vector<std::string> hosts_;
  std::vector<int> processes_;
};

}  // namespace trainctl
