// Chooses between an MPI rank and a process that is alone.
#include "parallel/comm/select.h"

#include <unistd.h>

#include <array>
#include <cstdlib>
#include <utility>

#include "parallel/comm/communicators.h"

namespace trainctl {

bool started_as_rank() {
  for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_SIZE"}) {
    if (std::getenv(variable)) return true;
  }
  return false;
}

World::World(std::chrono::milliseconds deadline, std::function<void()> late) {
  if (started_as_rank()) {
    environment_ = std::make_unique<MpiEnvironment>(deadline, std::move(late));
    hosts_ = environment_->hosts();
    processes_ = environment_->processes();
    communicator_ = mpi_communicator(*environment_);
    return;
  }
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  hosts_ = {name.data()};
  processes_ = {getpid()};
  communicator_ = solo_communicator();
}

void World::gather(std::chrono::milliseconds longer) {
  if (environment_) environment_->gather(longer);
}

void World::finish(int exit_code) {
  if (environment_) environment_->finalize(exit_code);
}

}  // namespace trainctl
