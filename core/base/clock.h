// The clocks: one for durations, one for what other processes read.
#pragma once

#include <chrono>

namespace trainctl {

// Seconds of a monotonic clock, of which only differences have a meaning.
inline double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Seconds since 1970 of the clock on the wall. It may be set, and those of two hosts differ.
inline double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace trainctl
