// Starts MPI, learns who is where, and ends it after a clean run.
#include "parallel/comm/environment.h"

#include <array>

#include "core/base/format.h"
#include "parallel/comm/mpi_check.h"

namespace trainctl {

#ifdef OMPI_MAJOR_VERSION
int openmpi_version() { return OMPI_MAJOR_VERSION; }
#define TRAINCTL_MPI format("Open MPI {}.{}.{}", OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION, OMPI_RELEASE_VERSION)
#else
int openmpi_version() { return 0; }
#define TRAINCTL_MPI format("MPI {}.{}", MPI_VERSION, MPI_SUBVERSION)
#endif

MpiVersions mpi_versions() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  MPI_Get_library_version(text.data(), &length);
  const std::string found(text.data(), static_cast<std::size_t>(length));
  return {TRAINCTL_MPI, found.substr(0, found.find_first_of(",\n"))};  // details of the package follow
}

MpiEnvironment::MpiEnvironment() {
  int provided = 0;
  check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided), "MPI_Init_thread");
  if (provided < MPI_THREAD_MULTIPLE) {
    throw Error(ErrorKind::resource, "this MPI library does not support calls from several threads",
                "use one that was built with MPI_THREAD_MULTIPLE, such as the distribution's OpenMPI");
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);

  MPI_Comm host;
  check_mpi(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &host),
            "finding the ranks of this host");
  MPI_Comm_rank(host, &local_rank_);
  MPI_Comm_size(host, &local_size_);
  MPI_Comm_free(&host);

  using Name = std::array<char, MPI_MAX_PROCESSOR_NAME>;
  Name own{};
  int length = 0;
  MPI_Get_processor_name(own.data(), &length);
  std::vector<Name> names(static_cast<std::size_t>(size_));
  check_mpi(MPI_Allgather(own.data(), sizeof(Name), MPI_CHAR, names.data(), sizeof(Name), MPI_CHAR, MPI_COMM_WORLD),
            "exchanging the hosts' names");
  for (const Name& name : names) hosts_.emplace_back(name.data());
}

void MpiEnvironment::finalize() { check_mpi(MPI_Finalize(), "MPI_Finalize"); }

}  // namespace trainctl
