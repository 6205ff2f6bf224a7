// The communicators that there are, NCCL's apart, which is a module of its own (parallel/comm/nccl).
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "core/backend/communicator.h"

namespace trainctl {

class Backend;
class MpiEnvironment;

// How ranks are taken together; the defaults are what the machine offers.
struct MpiOptions {
  // Ranks that share a host's memory; 0: as many as do. Fewer pretend more hosts than there are, for tests.
  int ranks_per_host = 0;
  // Without it every rank counts as a host of its own.
  bool shared_memory = true;
};

// Over all ranks of MPI, the processes that mpirun has started: through shared memory within a host, by MPI's messages
// across hosts. Collective. all_reduce first sums within each host, in place where the data lies in memory from
// allocate(), then across hosts, one sender per shard, then spreads the sum. The order of the sum is that of the ranks
// of a host, then that of the hosts. Where processes cannot share memory a warning says so. Communicators are given
// back to MPI by MpiEnvironment::finalize() alone: destroying one frees memory only. Its waits, and those of the
// communicators that are split from it, have the environment's deadline.
std::unique_ptr<Communicator> mpi_communicator(const MpiEnvironment& environment, const MpiOptions& options = {});

// Of a rank that is alone, for which every collective is already done: in the host's memory.
std::unique_ptr<Communicator> solo_communicator();

// Likewise in the device's memory: queues nothing, so that it can be part of recordings.
std::unique_ptr<Communicator> solo_communicator(Backend& backend);

// Between the devices of the ranks of `host`, which it keeps for itself, through the memory of their hosts: slow, but
// any number of ranks can share a device. Deadline, errors and the order of sums are the host's. Calls are asynchronous
// where the backend is; a failure surfaces in the next wait for any of its streams.
std::unique_ptr<Communicator> staged_communicator(std::unique_ptr<Communicator> host, Backend& backend);

// One without peers, by which the ops of a rank can be timed without the others: rank `rank` of `size`, whose calls
// return at once. Nothing is reduced, every part that is gathered is the rank's own, and what is received is random
// (numbers around 0; whole ones 0 or 1), so that no op works on zeros or on values that overflow. `reduced`, where
// given, stands for what peers add: it is called with the data of every all_reduce. Memory comes from `memory`, as in a
// run that reduces in place there, which outlives the result as the backend does.
std::unique_ptr<Communicator> loopback_communicator(int rank, int size, Backend& backend, Communicator& memory,
                                                    std::function<void(View)> reduced = {});

// Communicators of ranks 0 to ranks - 1 in one process, for tests, each used by a thread of its own. abort() of one
// throws Error{peer} in its thread, and the others' next waits end with Error{peer} too; the process lives on.
// `deadline`: of all waits for other ranks; zero: none.
std::vector<std::unique_ptr<Communicator>> thread_communicators(int ranks, std::chrono::milliseconds deadline = {});

}  // namespace trainctl
