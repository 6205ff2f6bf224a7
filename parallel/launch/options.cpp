// The keys of `cluster:`.
#include "parallel/launch/options.h"

#include "core/base/format.h"
#include "parallel/launch/hosts.h"

namespace trainctl {
namespace {

// The names reach mpirun and ssh.
void check_host_names(const ClusterOptions&, const Node& node, Reader& reader) {
  const Node* hosts = node.find("hosts");
  if (hosts == nullptr) return;
  for (const Node::Entry& host : hosts->entries) {
    if (!is_host_name(host.key)) reader.error(host.key_location, format("'{}' is no name of a host", host.key));
  }
}

}  // namespace

Keys<ClusterOptions> ClusterOptions::keys() {
  return Keys<ClusterOptions>("cluster", "How many ranks run, on what and where.")
      .key("ranks", &ClusterOptions::ranks, "Number of ranks: processes that train together; --ranks wins.",
           between(1, most_slots))
      .key("device", &ClusterOptions::device, "What the ranks compute on; --device wins.")
      .key("communication", &ClusterOptions::communication,
           "How GPUs reach each other: nccl wants one for each rank, staged goes through the hosts' memory, which is "
           "slow "
           "but always possible; auto takes nccl where it can.")
      .key("timeout", &ClusterOptions::timeout,
           "How long a rank waits for the others, or for its GPU, before the run ends with an error; 0 s: for ever.",
           at_least(0))
      .key(
          "memory", &ClusterOptions::memory,
          "The most memory that one rank may use of what its device has free, or of its part of the host's; auto: all.",
          more_than(0))
      .key("hosts", &ClusterOptions::hosts,
           "Hosts and how many ranks each takes at most; empty: this host, or what SLURM gave. --hosts wins.",
           between(1, most_slots))
      .key("hostfile", &ClusterOptions::hostfile, "A file of OpenMPI's form (`node1 slots=8`) in the place of `hosts`.")
      .check(check_host_names)
      .exclusive({"hosts", "hostfile"});
}

}  // namespace trainctl
