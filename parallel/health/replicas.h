// Checks that the replicas are still equal, by hashes of all parameters and statistics.
#pragma once

#include <cstdint>
#include <vector>

#include "core/backend/communicator.h"
#include "core/exec/interfaces/snapshot.h"

namespace trainctl {

class ReplicaCheck {
 public:
  // `replicas`: communicator of the data axis. `tensors` must have the same names, sizes and order on all ranks of
  // `replicas`; they are views into host memory that outlives the check. `rank`: this rank's number in the world, for
  // messages. All ranks of `replicas` must call this constructor.
  ReplicaCheck(std::vector<NamedTensor> tensors, Communicator& replicas, int rank, Stream& stream);

  // Waits for the stream, then compares; all replicas must call this function. Allocates no memory if all replicas are
  // equal. Otherwise throws Error{peer} on all replicas, which names each tensor that differs and the ranks that differ
  // from the majority.
  void compare(Stream& stream);

 private:
  void report(Stream& stream);

  std::vector<NamedTensor> tensors_;
  Communicator& replicas_;
  std::vector<std::int64_t> ranks_;    // numbers of the replicas' ranks in the world
  std::vector<std::int64_t> hashes_;   // hashes of this rank's tensors
  std::vector<std::int64_t> digests_;  // for each rank, the hash of its tensors' hashes
};

}  // namespace trainctl
