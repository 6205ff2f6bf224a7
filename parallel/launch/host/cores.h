// The cores of this host, and the share of each rank.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "parallel/launch/situation.h"

namespace trainctl {

// A core, as the numbers of its hardware threads that this process may use.
using Core = std::vector<int>;

// Groups processors into cores. `siblings` returns the processors that share a core with the given one, including
// itself (Linux's thread_siblings_list). Cores are ordered by their lowest processor.
std::vector<Core> group_cores(const std::vector<int>& processors, const std::function<Core(int)>& siblings);

struct Cores {
  std::vector<Core> allowed;  // the cores that the affinity of this process allows
  int usable = 1;  // number of cores to use, at least 1; a quota or a SLURM job may make it less than allowed.size()
  int online = 1;  // number of cores of the whole host
};

// Finds the cores of this host. A limit that cannot be read is ignored.
Cores find_cores(const Variables& variables);

// The threads and processors of one rank.
struct CoreShare {
  int threads = 1;              // number of threads that compute
  std::vector<int> processors;  // processors to bind to; empty: the affinity is not changed
};

// Returns an equal share of the usable cores; if there are enough cores, it is disjoint from the shares of the other
// ranks of the host. The user's own binding is kept; then only the number of threads is limited, so that all ranks
// together have at most one thread for each core.
CoreShare core_share_of(const Cores& cores, const Situation& situation);

// Return Linux's information about a PCI device such as "0000:17:00.0": its NUMA node (-1 if there is only one node or
// the node is unknown), and the processors close to the device.
int numa_node_of(const std::string& pci_bus_id);
std::vector<int> processors_near(const std::string& pci_bus_id);

// Returns the share of one rank in the cores that are close to its GPU. `count` ranks share these cores; `index`: the
// number of this rank among them. The user's own binding is kept. If there are fewer close cores than ranks, the result
// is core_share_of().
CoreShare core_share_near(const Cores& cores, const Situation& situation, const std::vector<int>& near, int index,
                          int count);

// Binds this process to its share of the cores, and returns the number of threads that kernels may use. OMP_NUM_THREADS
// overrides that number. Must be called before any thread starts, including MPI's threads.
int take_share(const Situation& situation, const Variables& variables);

// Replaces the share of take_share() once the PCI bus id of this rank's GPU and the number of ranks near the GPU are
// known. `cores`: the cores before take_share(). Binds this thread and all threads that it starts later.
int apply_share_near(const Cores& cores, const Situation& situation, const Variables& variables,
                     const std::string& pci_bus_id, int index, int count);

}  // namespace trainctl
