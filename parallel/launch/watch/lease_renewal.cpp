// The thread that renews leases.
#include "parallel/launch/watch/lease_renewal.h"

#include <chrono>
#include <utility>

namespace trainctl {

LeaseRenewal::LeaseRenewal(std::function<void()> renew)
    : thread_([this, renew = std::move(renew)](const std::stop_token& ended) {
        std::unique_lock lock(mutex_);
        while (!ended.stop_requested()) {
          if (!paused_) renew();
          condition_.wait_for(lock, ended, std::chrono::seconds(1), [] { return false; });
        }
      }) {}

void LeaseRenewal::pause() {
  const std::lock_guard lock(mutex_);
  paused_ = true;
}

void LeaseRenewal::resume() {
  const std::lock_guard lock(mutex_);
  paused_ = false;
}

}  // namespace trainctl
