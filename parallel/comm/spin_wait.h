// Waiting for other ranks: spins for some microseconds, then yields the core at every look, and after some milliseconds
// sleeps between looks.
#pragma once

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "core/backend/attendance.h"

namespace trainctl {

class SpinWait {
 public:
  // `oversubscribed`: more ranks than cores, so that spinning would keep the awaited rank from running. `bytes`: those
  // that travel. A wait for few of them is a wait for a rank: it may last, beside a computation that needs the core.
  // More of them travel by the looks themselves, which then do not pause.
  SpinWait(Attendance& attendance, bool oversubscribed, std::int64_t bytes)
      : wait_(attendance), spins_(oversubscribed ? 0 : spin_limit), sleeps_(bytes <= few_bytes) {}

  // Call after each look in vain. False once the wait has to end (see PeerWait).
  bool wait() {
    if (spins_ > 0) {
      --spins_;
      __builtin_ia32_pause();
      return true;
    }
    const auto waited = wait_.waited();
    if (sleeps_ && waited > patience) {
      std::this_thread::sleep_for(std::min(waited / 64, longest_sleep));  // so a wait ends 1/64 late at most
      return wait_.goes_on();
    }
    sched_yield();
    return looks_++ % 64 != 0 || wait_.goes_on();
  }

 private:
  static constexpr int spin_limit = 1000;
  static constexpr std::int64_t few_bytes = 64 << 10;
  static constexpr std::chrono::nanoseconds patience = std::chrono::milliseconds(5);
  static constexpr std::chrono::nanoseconds longest_sleep = std::chrono::milliseconds(2);

  PeerWait wait_;
  int spins_;
  bool sleeps_;
  unsigned looks_ = 0;
};

}  // namespace trainctl
