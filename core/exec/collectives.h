// Collectives as kernels: what the executor runs with a communicator instead of the backend.
#pragma once

#include <memory>
#include <vector>

#include "core/backend/backend.h"
#include "core/backend/communicator.h"
#include "core/backend/kernel.h"

namespace trainctl {

// The order between the compute and the communication stream, one event pair for each bucket. Where both are the same
// stream, the order is that of the calls.
class CollectiveStreams {
 public:
  CollectiveStreams(Backend& backend, Communicator& communicator, Stream& communication, int buckets);

  // Sum over the ranks, on the communication stream, after everything queued on `compute` so far.
  void all_reduce(int bucket, View data, Stream& compute);
  // Later work on `compute` runs after the bucket's sum.
  void wait(int bucket, Stream& compute);

 private:
  Communicator& communicator_;
  Stream& communication_;
  std::vector<std::unique_ptr<Event>> ready_;
  std::vector<std::unique_ptr<Event>> reduced_;
};

// Binds an all_reduce or wait op. `gradients` is the whole gradient region.
std::unique_ptr<Kernel> bind_collective(const Op& op, View gradients, CollectiveStreams& streams);

}  // namespace trainctl
