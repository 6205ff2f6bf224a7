// Starts and ends MPI in this process; holds the list of the ranks and their hosts.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/backend/attendance.h"

namespace trainctl {

// The MPI libraries; trainctl can use the launchers of all except `other`.
enum class MpiLibrary { openmpi4, openmpi5, mpich, other };

// Recognizes the library by the text of MPI_Get_library_version().
MpiLibrary mpi_library_of(std::string_view text);
// Returns the library that this program runs with. It may differ from the library that the program was built with:
// OpenMPI 5 can replace OpenMPI 4.
MpiLibrary mpi_library();

// The version of MPI that this program was built with, such as "Open MPI 4.1.4", and the version that the loaded
// library reports. mpi_versions() can be called before MPI starts.
struct MpiVersions {
  std::string built, found;
};
MpiVersions mpi_versions();

// MPI in a process that mpirun, or srun with PMI, has started. There is one object per process, created before any
// other thread; all ranks create it together.
class MpiEnvironment {
 public:
  // `deadline`: the deadline of all waits for other ranks, here and in the communicators; zero: no deadline. Throws
  // Error{peer} if MPI does not start or ranks are missing, Error{resource} if MPI does not support calls from several
  // threads. MPI_Init waits for all ranks and cannot be interrupted; if it lasts longer than the deadline, `late` is
  // called on another thread.
  explicit MpiEnvironment(std::chrono::milliseconds deadline = {}, std::function<void()> late = {});
  MpiEnvironment(const MpiEnvironment&) = delete;
  MpiEnvironment& operator=(const MpiEnvironment&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  // This rank's number among the ranks that share this host's memory.
  int local_rank() const { return local_rank_; }
  int local_size() const { return local_size_; }
  // The name of the host of each rank.
  const std::vector<std::string>& hosts() const { return hosts_; }
  // The process id of each rank on its host.
  const std::vector<int>& processes() const { return processes_; }

  // The attendance of all ranks.
  const std::shared_ptr<Attendance>& attendance() const { return attendance_; }

  // Waits until all ranks have called this function. Throws Error{peer} if a rank is later than the others by more than
  // the deadline plus `longer`.
  void gather(std::chrono::milliseconds longer);
  // Ends MPI after a successful run; all ranks call it together. A process that does not call it must exit with a
  // non-zero code, so that mpirun ends the other ranks. If another rank hangs here for longer than the deadline, this
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
