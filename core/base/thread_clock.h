// The time that a thread has computed.
#pragma once

#include <time.h>

namespace trainctl {

// Returns the CPU seconds of the calling thread, which other processes on the same core do not lengthen.
inline double thread_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace trainctl
