// Seconds of a monotonic clock, of which only differences have a meaning.
#pragma once

#include <chrono>

namespace trainctl {

inline double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace trainctl
