// Seconds of a clock that only goes forward.
#pragma once

#include <chrono>

namespace trainctl {

inline double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace trainctl
