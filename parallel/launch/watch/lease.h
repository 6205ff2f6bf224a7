// A lease: how long an agent, and the ranks on its host, may go on without a message from the supervisor.
#pragma once

#include <chrono>

namespace trainctl {

class Lease {
 public:
  using Clock = std::chrono::steady_clock;

  // `length`: zero means that the lease never ends.
  Lease(std::chrono::milliseconds length, Clock::time_point now) : length_(length), renewed_(now), looked_(now) {}

  void renew(Clock::time_point now) {
    renewed_ = now;
    paused_ = false;
  }
  // The lease does not end before it is renewed.
  void pause() { paused_ = true; }

  // Returns whether the lease is over. Called at least once a second: if more time has passed, this process was
  // suspended, perhaps with the whole machine, and could not receive a message; this time does not count.
  bool is_over(Clock::time_point now) {
    constexpr std::chrono::seconds longest_gap(3);
    if (now - looked_ > longest_gap) renewed_ += now - looked_;
    looked_ = now;
    return !paused_ && length_.count() > 0 && now - renewed_ > length_;
  }

 private:
  std::chrono::milliseconds length_;
  Clock::time_point renewed_, looked_;
  bool paused_ = false;
};

}  // namespace trainctl
