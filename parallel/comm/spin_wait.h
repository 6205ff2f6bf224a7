// Waiting for other ranks: spins for some microseconds, then yields the core at every look, until a deadline.
#pragma once

#include <sched.h>

#include <chrono>

namespace trainctl {

class SpinWait {
 public:
  using Clock = std::chrono::steady_clock;

  // `oversubscribed`: more ranks than cores, so that spinning would keep the awaited rank from running. A deadline of
  // zero is none.
  SpinWait(std::chrono::milliseconds deadline, bool oversubscribed)
      : deadline_(deadline), spins_(oversubscribed ? 0 : spin_limit) {}

  // Call after each look in vain. False once the deadline has passed.
  bool wait() {
    if (spins_ > 0) {
      --spins_;
      __builtin_ia32_pause();
      return true;
    }
    sched_yield();
    if (looks_++ % 64 != 0) return true;
    const auto now = Clock::now();
    if (looks_ == 1) start_ = now;
    return deadline_.count() == 0 || now - start_ < deadline_;
  }

 private:
  static constexpr int spin_limit = 1000;

  std::chrono::milliseconds deadline_;
  int spins_;
  unsigned looks_ = 0;
  Clock::time_point start_;
};

}  // namespace trainctl
