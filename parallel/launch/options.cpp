// The keys of `cluster:`.
#include "parallel/launch/options.h"

#include <algorithm>

#include "core/base/format.h"
#include "parallel/launch/hosts.h"

namespace trainctl {
namespace {

// Checks the host names, since they are passed to mpirun and ssh.
void check_host_names(const ClusterOptions&, const Node& node, Reader& reader) {
  const Node* hosts = node.find("hosts");
  if (hosts == nullptr) return;
  for (const Node::Entry& host : hosts->entries) {
    if (!is_host_name(host.key)) reader.error(host.key_location, format("'{}' is not a valid host name", host.key));
  }
}

}  // namespace

Keys<RestartOptions> RestartOptions::keys() {
  return Keys<RestartOptions>("restarts", "When the ranks of a run start again after a failure.")
      .key("max", &RestartOptions::max,
           "How often the ranks start again from the newest checkpoint after a rank or a host has failed or does not "
           "answer; --max-restarts overrides it. Errors of the config or the data, divergence, and four attempts in a "
           "row without progress end the run.",
           between(0, most_restarts))
      .key("min_ranks", &RestartOptions::min_ranks,
           "The smallest number of ranks that train if hosts are lost; with fewer, the run ends. At most the number of "
           "ranks of the run.",
           between(1, max_slots))
      .shorthand("max");
}

// If hosts are busy, or the caches of a file server are empty, ranks start later than a short `timeout` would allow.
std::chrono::milliseconds ClusterOptions::start_deadline() const {
  constexpr double least = 30;  // seconds
  const double seconds = start_timeout.or_else({timeout.value > 0 ? std::max(timeout.value, least) : 0}).value;
  return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1e3));
}

Keys<ClusterOptions> ClusterOptions::keys() {
  return Keys<ClusterOptions>("cluster", "How many ranks run, and on which devices and hosts.")
      .key("ranks", &ClusterOptions::ranks, "Number of ranks: processes that train together; --ranks overrides it.",
           between(1, max_slots))
      .key("device", &ClusterOptions::device, "The device that the ranks compute on; --device overrides it.")
      .key("communication", &ClusterOptions::communication,
           "How GPUs exchange data: nccl requires a GPU for each rank, staged copies through the hosts' memory, which "
           "is slow but always works; auto uses nccl if possible.")
      .key("timeout", &ClusterOptions::timeout,
           "How long a rank waits for the others, or for its GPU, before the run ends with an error; 0 s: for ever.",
           at_least(0))
      .key("start_timeout", &ClusterOptions::start_timeout,
           "How long the ranks may take to start on all hosts, and one of them longer than the others to prepare the "
           "training before the first step of a phase; 0 s: for ever; auto: `timeout`, but at least 30 s.",
           at_least(0))
      .key(
          "hang_timeout", &ClusterOptions::hang_timeout,
          "How long the ranks may make no progress in training until the supervisor reports which rank the others wait "
          "for, and ends the attempt. auto: the largest of 10 s, 20 times the median time between steps, and 3 times "
          "the second longest of the last 16 long times without progress; none: the ranks are not watched.",
          at_least(3))
      .key("memory", &ClusterOptions::memory,
           "The most memory that one rank may use of its device's free memory, or of its share of the host's; auto: "
           "all.",
           more_than(0))
      .key("hosts", &ClusterOptions::hosts,
           "Hosts, each with its maximum number of ranks; empty: this host, or the nodes of the SLURM job. --hosts "
           "overrides it.",
           between(1, max_slots))
      .key("hostfile", &ClusterOptions::hostfile,
           "A hostfile in OpenMPI's format (`node1 slots=8`), instead of `hosts`.")
      .key("restarts", &ClusterOptions::restarts,
           "Starts the ranks again after a failure: a map, or the largest number of restarts.")
      .key("mean_time_between_failures", &ClusterOptions::mean_time_between_failures,
           "How long one host trains on average until a run on it fails for any reason; a run on n hosts fails n times "
           "as often. `checkpoint.every: auto` uses it. The training of Llama 3.1 was interrupted every 2.5 h on 2,000 "
           "hosts, which is 208 d for one host; the default is half as long, since smaller clusters are preempted and "
           "have errors of users, too.",
           at_least(1))
      .check(check_host_names)
      .exclusive({"hosts", "hostfile"});
}

}  // namespace trainctl
