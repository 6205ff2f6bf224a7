// Starts MPI, finds the hosts and processes of all ranks, and ends MPI after a successful run.
#include "parallel/comm/environment.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

#include "core/base/format.h"
#include "parallel/comm/bounded.h"
#include "parallel/comm/mpi_attendance.h"
#include "parallel/comm/mpi_check.h"

namespace trainctl {

#ifdef OMPI_MAJOR_VERSION
#define TRAINCTL_MPI format("Open MPI {}.{}.{}", OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION, OMPI_RELEASE_VERSION)
#elif defined(MPICH_VERSION)
#define TRAINCTL_MPI format("MPICH {}", MPICH_VERSION)
#else
#define TRAINCTL_MPI format("MPI {}.{}", MPI_VERSION, MPI_SUBVERSION)
#endif

namespace {

// Watches a start that has no deadline of its own: calls `late` once, on its own thread, if more than `limit` passes
// between the construction and the destruction of this object.
class StartWatch {
 public:
  // Does nothing if the limit is zero or `late` is empty.
  StartWatch(std::chrono::milliseconds limit, std::function<void()> late) {
    if (limit.count() == 0 || !late) return;
    thread_ = std::jthread([this, limit, late = std::move(late)](const std::stop_token& ended) {
      std::unique_lock lock(mutex_);
      condition_.wait_for(lock, ended, limit, [] { return false; });
      if (!ended.stop_requested()) late();
    });
  }

 private:
  std::mutex mutex_;
  std::condition_variable_any condition_;
  std::jthread thread_;  // destroyed first, since it is the last member
};

std::string library_version() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  MPI_Get_library_version(text.data(), &length);
  return {text.data(), static_cast<std::size_t>(length)};
}

// Returns library and version without details of the package, from "MPICH Version:\t4.0.2\n..." or "Open MPI v4.1.4,
// package: ...".
std::string first_words(const std::string& text) {
  constexpr std::string_view mpich = "MPICH Version:";
  const std::string line = text.substr(0, text.find_first_of(",\n"));
  if (!line.starts_with(mpich)) return line;
  return "MPICH " + line.substr(std::min(line.find_first_not_of("\t ", mpich.size()), line.size()));
}

struct FoundRanks {
  int local_rank = 0, local_size = 1;
  std::vector<std::string> hosts;  // host name of each rank
  std::vector<int> processes;      // process id of each rank
};

// Exchanges host names and process ids; all ranks must call this function.
FoundRanks find_ranks(int size) {
  FoundRanks found;
  MPI_Comm host = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host),
            "finding the ranks of this host");
  MPI_Comm_rank(host, &found.local_rank);
  MPI_Comm_size(host, &found.local_size);
  MPI_Comm_free(&host);

  using Name = std::array<char, MPI_MAX_PROCESSOR_NAME>;
  Name own{};
  int length = 0;
  MPI_Get_processor_name(own.data(), &length);
  std::vector<Name> names(static_cast<std::size_t>(size));
  check_mpi(MPI_Allgather(own.data(), sizeof(Name), MPI_CHAR, names.data(), sizeof(Name), MPI_CHAR, MPI_COMM_WORLD),
            "exchanging the host names");
  for (const Name& name : names) found.hosts.emplace_back(name.data());
  const int process = getpid();
  found.processes.resize(names.size());
  check_mpi(MPI_Allgather(&process, 1, MPI_INT, found.processes.data(), 1, MPI_INT, MPI_COMM_WORLD),
            "exchanging the process ids");
  return found;
}

}  // namespace

MpiLibrary mpi_library_of(std::string_view text) {
  if (text.starts_with("Open MPI v4.")) return MpiLibrary::openmpi4;
  if (text.starts_with("Open MPI v5.")) return MpiLibrary::openmpi5;
  return text.starts_with("MPICH Version:") ? MpiLibrary::mpich : MpiLibrary::other;
}

MpiLibrary mpi_library() { return mpi_library_of(library_version()); }

MpiVersions mpi_versions() { return {TRAINCTL_MPI, first_words(library_version())}; }

MpiEnvironment::MpiEnvironment(std::chrono::milliseconds deadline, std::function<void()> late) {
  int provided = 0;
  {
    const StartWatch watch(deadline, std::move(late));
    check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided), "MPI_Init_thread");
  }
  if (provided < MPI_THREAD_MULTIPLE) {
    throw Error(ErrorKind::resource, "this MPI library does not support calls from several threads",
                "use one that was built with MPI_THREAD_MULTIPLE, such as the distribution's OpenMPI");
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
  const auto attendance = std::make_shared<MpiAttendance>(deadline);
  const auto found = bounded(*attendance, "finding the ranks", [size = size_] { return find_ranks(size); });
  local_rank_ = found.local_rank;
  local_size_ = found.local_size;
  hosts_ = found.hosts;
  processes_ = found.processes;
  attendance->set_hosts(hosts_);
  attendance_ = attendance;
}

void MpiEnvironment::gather(std::chrono::milliseconds longer) {
  constexpr std::chrono::milliseconds poll_interval{1};
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Ibarrier(MPI_COMM_WORLD, &request), "MPI_Ibarrier");
  PeerWait wait(*attendance_, longer);
  for (int done = 0; check_mpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test"), !done;) {
    if (!wait.goes_on()) attendance_->report_missing("the end of all ranks");
    std::this_thread::sleep_for(poll_interval);
  }
}

void MpiEnvironment::finalize(int exit_code) {
  if (const auto deadline = attendance_->deadline(); deadline.count() > 0) {
    std::thread([deadline, exit_code] {
      std::this_thread::sleep_for(deadline);
      std::_Exit(exit_code);
    }).detach();
  }
  check_mpi(MPI_Finalize(), "MPI_Finalize");
}

}  // namespace trainctl
