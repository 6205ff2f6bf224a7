// Creates communicators of all kinds except NCCL, which is a module of its own (parallel/comm/nccl).
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "core/backend/communicator.h"

namespace trainctl {

class Backend;
class MpiEnvironment;

// How ranks are grouped into hosts; the defaults use the real hosts.
struct MpiOptions {
  // The number of ranks that share a host's memory; 0: all ranks of the host. A smaller number simulates more hosts,
  // for tests.
  int ranks_per_host = 0;
  // False: every rank counts as a host of its own.
  bool shared_memory = true;
};

// Makes the communicator of all MPI ranks. All ranks must call this function. Ranks of one host exchange data through
// shared memory, ranks of different hosts by MPI messages. all_reduce first sums within each host (in place if the data
// is in memory from allocate()), then across hosts with one sender per shard, and then distributes the sum within each
// host. Values are summed in the order of the ranks within a host, then in the order of the hosts. If processes cannot
// share memory, a warning is logged. MPI frees its communicators only in MpiEnvironment::finalize(); destroying the
// result frees only its memory. Its waits, and those of communicators split from it, have the environment's deadline.
std::unique_ptr<Communicator> mpi_communicator(const MpiEnvironment& environment, const MpiOptions& options = {});

// Makes a communicator with one rank, in host memory. Every collective completes immediately.
std::unique_ptr<Communicator> solo_communicator();

// Makes a communicator with one rank, in device memory. It queues no work, so that its calls can be recorded.
std::unique_ptr<Communicator> solo_communicator(Backend& backend);

// Makes a communicator between the devices of the ranks of `host`, which it owns. Data passes through host memory,
// which is slow, but any number of ranks can share a device. It has the deadline, errors and order of sums of `host`.
// Calls are asynchronous if the backend is; a failure is thrown by the next wait for any of its streams.
std::unique_ptr<Communicator> staged_communicator(std::unique_ptr<Communicator> host, Backend& backend);

// Makes a communicator without peers, with which the ops of one rank can be timed alone. It is rank `rank` of `size`,
// and its calls return immediately. Reductions leave the data unchanged, and all_gather copies this rank's own data to
// the shards of all ranks. Received data is random (floating-point numbers around 0, integers 0 or 1), so that no op
// works on zeros or on values that overflow. `reduced`, if given, is called with the data of every all_reduce, to
// imitate the contributions of the peers. Memory is allocated by `memory`, so that a run reduces in place as with the
// real communicator. `memory` and `backend` must outlive the result.
std::unique_ptr<Communicator> loopback_communicator(int rank, int size, Backend& backend, Communicator& memory,
                                                    std::function<void(View)> reduced = {});

// Makes communicators of ranks 0 to ranks - 1 in one process, for tests; each is used by its own thread. abort() throws
// Error{peer} in the calling thread, and the next waits of the other ranks throw Error{peer}, too; the process
// continues. `deadline`: the deadline of all waits for other ranks; zero: no deadline.
std::vector<std::unique_ptr<Communicator>> thread_communicators(int ranks, std::chrono::milliseconds deadline = {});

}  // namespace trainctl
