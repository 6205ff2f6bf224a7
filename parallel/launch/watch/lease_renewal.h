// Renews the leases of agents on a thread of its own, so that they hold also while the supervisor waits, for example
// for a file server.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace trainctl {

class LeaseRenewal {
 public:
  // Calls `renew`, which must not wait, about once a second on its own thread until the object is destroyed.
  explicit LeaseRenewal(std::function<void()> renew);

  // After pause(), `renew` is not called until resume().
  void pause();
  void resume();

 private:
  std::mutex mutex_;
  std::condition_variable_any condition_;
  bool paused_ = false;
  std::jthread thread_;  // destroyed first, since it is the last member
};

}  // namespace trainctl
