// The cores of this host, and which of them a rank works on.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "parallel/launch/situation.h"

namespace trainctl {

// A core: the numbers of its hardware threads that this process may use.
using Core = std::vector<int>;

// Groups processors into cores. `core_of` tells the processors that share a core with one, itself included (what Linux
// has in thread_siblings_list). Cores come in the order of their lowest processor.
std::vector<Core> group_cores(const std::vector<int>& processors, const std::function<Core(int)>& siblings);

struct Cores {
  std::vector<Core> allowed;  // by the affinity of this process
  int usable = 1;             // at least 1; fewer than allowed where a quota or a SLURM job grants less time than that
  int online = 1;             // of the whole host
};

// Finds the cores of this host. A limit that cannot be read counts as none.
Cores find_cores(const Variables& variables);

// The threads and processors of one rank of a host.
struct CoreShare {
  int threads = 1;              // for computation
  std::vector<int> processors;  // to bind to; empty: stay as it is
};

// An equal part of the usable cores, disjoint from those of the other ranks of the host while there are enough; a
// user's own binding stays and is only kept from adding up to more threads than there are cores.
CoreShare core_share_of(const Cores& cores, const Situation& situation);

// Linux' files on a PCI device, "0000:17:00.0": its NUMA node, -1 where there is one node alone or nothing is known,
// and the processors close to it.
int numa_node_of(const std::string& pci_bus_id);
std::vector<int> processors_near(const std::string& pci_bus_id);

// The cores among `cores` that are close to a rank's GPU, shared with its `count` neighbours there, of which it is
// number `index`. A user's own binding stays; so does everything where not every neighbour could have a core.
CoreShare core_share_near(const Cores& cores, const Situation& situation, const std::vector<int>& near, int index,
                          int count);

// Takes this rank's share: binds the process. Call it before any thread starts, MPI's included. A number in
// OMP_NUM_THREADS wins. What comes back is the number of threads that kernels may use.
int take_share(const Situation& situation, const Variables& variables);

// The same again once this rank's GPU is known, at its PCI bus id, and its neighbours there. `cores` are those from
// before the first share was taken. Binds this thread and all that it starts from now on.
int take_share_near(const Cores& cores, const Situation& situation, const Variables& variables,
                    const std::string& pci_bus_id, int index, int count);

}  // namespace trainctl
