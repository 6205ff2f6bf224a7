// A wait for other ranks: spins for some microseconds, then yields the core after every poll, and after some
// milliseconds sleeps between polls. A wait for little data beside the rank's computation sleeps from its beginning.
#pragma once

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "core/backend/attendance.h"
#include "parallel/comm/call.h"

namespace trainctl {

class SpinWait {
 public:
  // `oversubscribed`: there are more ranks than cores, so that spinning would keep the awaited rank from running.
  // `call`: a call with little data lasts until the other rank arrives, which may be long: it sleeps, so that other
  // threads can use the core. A wait for more data does not sleep, since polling moves the data.
  SpinWait(Attendance& attendance, bool oversubscribed, const Call& call)
      : wait_(attendance),
        spins_(oversubscribed || call.background ? 0 : spin_limit),
        sleeps_(call.data.bytes() <= small_bytes_limit),
        time_before_sleep_(call.background ? std::chrono::nanoseconds(0) : usual_time_before_sleep),
        sleep_part_(call.background ? 2 : 64),
        longest_sleep_(call.background ? std::chrono::milliseconds(10) : std::chrono::milliseconds(2)) {}

  // Must be called after each unsuccessful poll. Returns false once the wait has to end (see PeerWait).
  bool wait() {
    if (spins_ > 0) {
      --spins_;
      __builtin_ia32_pause();
      return true;
    }
    const auto waited = wait_.waited();
    if (sleeps_ && waited >= time_before_sleep_) {
      // So the wait ends at most that part of its time too late, or the shortest sleep.
      std::this_thread::sleep_for(std::clamp(waited / sleep_part_, shortest_sleep, longest_sleep_));
      return wait_.goes_on();
    }
    sched_yield();
    return polls_++ % 64 != 0 || wait_.goes_on();
  }

 private:
  static constexpr int spin_limit = 1000;
  static constexpr std::int64_t small_bytes_limit = 64 << 10;
  static constexpr std::chrono::nanoseconds usual_time_before_sleep = std::chrono::milliseconds(5);
  static constexpr std::chrono::nanoseconds shortest_sleep = std::chrono::microseconds(100);

  PeerWait wait_;
  int spins_;
  bool sleeps_;
  std::chrono::nanoseconds time_before_sleep_;
  int sleep_part_;
  std::chrono::nanoseconds longest_sleep_;
  unsigned polls_ = 0;
};

}  // namespace trainctl
