// Checks that the replicas are still equal, by hashes of all parameters and statistics.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/backend/communicator.h"
#include "core/exec/interfaces/snapshot.h"

namespace trainctl {

// How replicas differ. Equal on all of them.
struct ReplicaDifference {
  std::string text;          // "tensor 'dense/bias' on rank 1 differs from ranks 0 and 2; ..."
  std::vector<int> odd;      // ranks in the world that differ from the majority in a tensor, ascending
  std::vector<bool> is_odd;  // for each replica
  bool majority = true;      // whether for each tensor more than half of the replicas are equal
};

class ReplicaCheck {
 public:
  // `replicas`: communicator of the data axis. `tensors` must have the same names, sizes and order on all ranks of
  // `replicas`; they are views into host memory that outlives the check. `rank`: this rank's number in the world, for
  // messages; `hosts`: the host of each rank of the world; empty: hosts are not named. All ranks of `replicas` must
  // call this constructor.
  ReplicaCheck(std::vector<NamedTensor> tensors, Communicator& replicas, int rank, Stream& stream,
               std::vector<std::string> hosts = {});

  // Waits for the stream, then compares; all replicas must call this function. Allocates no memory if all replicas are
  // equal. Otherwise returns how they differ.
  std::optional<ReplicaDifference> find(Stream& stream);
  // Overwrites the tensors of all replicas with those of replica `good`. All replicas must call this function.
  void send_from(int good, Stream& stream);

 private:
  ReplicaDifference describe(Stream& stream);
  std::string describe_tensor(const std::string& name, const std::vector<std::int64_t>& hashes,
                              ReplicaDifference& all) const;
  std::string name_of(const std::vector<std::size_t>& replicas, bool with_hosts) const;

  std::vector<NamedTensor> tensors_;
  Communicator& replicas_;
  std::vector<std::string> hosts_;
  std::vector<std::int64_t> ranks_;    // numbers of the replicas' ranks in the world
  std::vector<std::int64_t> hashes_;   // hashes of this rank's tensors
  std::vector<std::int64_t> digests_;  // for each rank, the hash of its tensors' hashes
};

// The remedy for replicas that differ.
inline constexpr const char* remedy_for_replicas =
    "check the memory and processors of these ranks' hosts; resume from the last checkpoint";

}  // namespace trainctl
