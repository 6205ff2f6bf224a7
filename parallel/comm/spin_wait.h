// A wait for other ranks: spins for some microseconds, then yields the core after every poll, and after some
// milliseconds sleeps between polls.
#pragma once

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "core/backend/attendance.h"

namespace trainctl {

class SpinWait {
 public:
  // `oversubscribed`: there are more ranks than cores, so that spinning would keep the awaited rank from running.
  // `bytes`: the size of the data. A wait for little data lasts until the other rank arrives, which may be long: it
  // sleeps, so that other threads can use the core. A wait for more data does not sleep, since polling moves the data.
  SpinWait(Attendance& attendance, bool oversubscribed, std::int64_t bytes)
      : wait_(attendance), spins_(oversubscribed ? 0 : spin_limit), sleeps_(bytes <= small_bytes_limit) {}

  // Must be called after each unsuccessful poll. Returns false once the wait has to end (see PeerWait).
  bool wait() {
    if (spins_ > 0) {
      --spins_;
      __builtin_ia32_pause();
      return true;
    }
    const auto waited = wait_.waited();
    if (sleeps_ && waited > time_before_sleep) {
      std::this_thread::sleep_for(std::min(waited / 64, longest_sleep));  // so that a wait ends at most 1/64 too late
      return wait_.goes_on();
    }
    sched_yield();
    return polls_++ % 64 != 0 || wait_.goes_on();
  }

 private:
  static constexpr int spin_limit = 1000;
  static constexpr std::int64_t small_bytes_limit = 64 << 10;
  static constexpr std::chrono::nanoseconds time_before_sleep = std::chrono::milliseconds(5);
  static constexpr std::chrono::nanoseconds longest_sleep = std::chrono::milliseconds(2);

  PeerWait wait_;
  int spins_;
  bool sleeps_;
  unsigned polls_ = 0;
};

}  // namespace trainctl
