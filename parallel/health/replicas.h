// Are the replicas still equal? Compares hashes of all parameters and statistics between the ranks.
#pragma once

#include <cstdint>
#include <vector>

#include "core/backend/communicator.h"
#include "core/exec/interfaces/snapshot.h"

namespace trainctl {

class ReplicaCheck {
 public:
  // The same names and sizes in the same order on all ranks of `replicas`, the data axis of the mesh; views into host
  // memory that outlives the check. `rank` is this rank's number for people, in the world. Collective.
  ReplicaCheck(std::vector<NamedTensor> tensors, Communicator& replicas, int rank, Stream& stream);

  // Waits for the stream, then compares. Collective. Allocates nothing while all is well. Throws Error{peer}, on all
  // replicas, that names each tensor that differs and the ranks whose values are not the majority's.
  void compare(Stream& stream);

 private:
  void report(Stream& stream);

  std::vector<NamedTensor> tensors_;
  Communicator& replicas_;
  std::vector<std::int64_t> ranks_;    // of the replicas, in the world
  std::vector<std::int64_t> hashes_;   // of this rank's tensors
  std::vector<std::int64_t> digests_;  // one for each rank: the hash of its hashes
};

}  // namespace trainctl
