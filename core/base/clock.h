// Two clocks: a monotonic clock for durations, and the time of day for files and other processes.
#pragma once

#include <chrono>

namespace trainctl {

// Seconds of a monotonic clock; only differences between two values have a meaning.
inline double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Seconds since 1970 by the system clock. The clock may be adjusted at any time, and the clocks of two hosts differ.
inline double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace trainctl
