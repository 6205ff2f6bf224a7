// The keys of `cluster:`.
#include "parallel/launch/options.h"

namespace trainctl {

Keys<ClusterOptions> ClusterOptions::keys() {
  return Keys<ClusterOptions>("cluster", "How many ranks run, on what and where.")
      .key("ranks", &ClusterOptions::ranks, "Number of ranks: processes that train together; --ranks wins.",
           between(1, most_ranks))
      .key("device", &ClusterOptions::device, "What the ranks compute on; --device wins.")
      .key("communication", &ClusterOptions::communication,
           "How GPUs reach each other: nccl wants one for each rank, staged goes through the hosts' memory, which is "
           "slow "
           "but always possible; auto takes nccl where it can.")
      .key("timeout", &ClusterOptions::timeout,
           "How long a rank waits for the others, or for its GPU, before the run ends with an error; 0 s: for ever.",
           at_least(0))
      .key("hosts", &ClusterOptions::hosts,
           "Hosts and how many ranks each takes at most; empty: this host, or what SLURM gave. --hosts wins.",
           between(1, most_ranks))
      .key("hostfile", &ClusterOptions::hostfile, "A file of OpenMPI's form (`node1 slots=8`) in the place of `hosts`.")
      .exclusive({"hosts", "hostfile"});
}

}  // namespace trainctl
