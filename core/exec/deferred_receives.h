// Receives that run on the compute thread, at the Wait for their data.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/backend/kernel.h"
#include "core/backend/stream.h"

namespace trainctl {

// Queues the receives of one communicator, which run in the order in which they were added.
class DeferredReceives {
 public:
  using Receive = std::function<void(Stream&, const Slot&)>;

  // Adds a receive, which must outlive its run. Returns its number.
  std::uint64_t add(const Receive& receive, const Slot& slot);
  // Runs the receives that have not run yet, up to this number.
  void run_until(std::uint64_t number, Stream& compute);

 private:
  struct Pending {
    const Receive* receive = nullptr;
    Slot slot;
  };

  std::vector<Pending> ring_ = std::vector<Pending>(16);  // grows to the longest backlog
  std::uint64_t added_ = 0, run_ = 0;
};

}  // namespace trainctl
