// Waiting for other ranks: spins for some microseconds, then yields the core at every look, as long as the wait goes
// on.
#pragma once

#include <sched.h>

#include "core/backend/attendance.h"

namespace trainctl {

class SpinWait {
 public:
  // `oversubscribed`: more ranks than cores, so that spinning would keep the awaited rank from running.
  SpinWait(Attendance& attendance, bool oversubscribed) : wait_(attendance), spins_(oversubscribed ? 0 : spin_limit) {}

  // Call after each look in vain. False once the wait has to end (see PeerWait).
  bool wait() {
    if (spins_ > 0) {
      --spins_;
      __builtin_ia32_pause();
      return true;
    }
    sched_yield();
    return looks_++ % 64 != 0 || wait_.goes_on();
  }

 private:
  static constexpr int spin_limit = 1000;

  PeerWait wait_;
  int spins_;
  unsigned looks_ = 0;
};

}  // namespace trainctl
