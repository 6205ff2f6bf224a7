// Queues receives and runs them in order.
#include "core/exec/deferred_receives.h"

#include <utility>

namespace trainctl {

std::uint64_t DeferredReceives::add(const Receive& receive, const Slot& slot) {
  if (added_ - run_ == ring_.size()) {
    std::vector<Pending> larger(2 * ring_.size());
    for (std::uint64_t i = run_; i < added_; ++i) larger[i % larger.size()] = ring_[i % ring_.size()];
    ring_ = std::move(larger);
  }
  ring_[added_ % ring_.size()] = {&receive, slot};
  return ++added_;
}

void DeferredReceives::run_until(std::uint64_t number, Stream& compute) {
  while (run_ < number) {
    const Pending next = ring_[run_++ % ring_.size()];
    (*next.receive)(compute, next.slot);
  }
}

}  // namespace trainctl
