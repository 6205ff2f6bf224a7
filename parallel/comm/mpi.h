// The communicator between processes: shared memory within a host, MPI's messages across hosts.
#pragma once

#include <memory>

#include "core/backend/communicator.h"
#include "parallel/comm/environment.h"

namespace trainctl {

// How ranks are taken together; the defaults are what the machine offers.
struct MpiOptions {
  // Ranks that share a host's memory; 0: as many as do. Fewer pretend more hosts than there are, for tests.
  int ranks_per_host = 0;
  // Without it every rank counts as a host of its own.
  bool shared_memory = true;
};

// Over all ranks of MPI. Collective. all_reduce first sums within each host, in place where the data lies in memory
// from allocate(), then across hosts, one sender per shard, then spreads the sum. The order of the sum is that of the
// ranks of a host, then that of the hosts. Where processes cannot share memory a warning says so. Communicators are
// given back to MPI by MpiEnvironment::finalize() alone: destroying one frees memory only. Its waits, and those of the
// communicators that are split from it, have the environment's deadline.
std::unique_ptr<Communicator> mpi_communicator(const MpiEnvironment& environment, const MpiOptions& options = {});

}  // namespace trainctl
