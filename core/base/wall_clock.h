// Seconds of the clock on the wall, for what other processes read. It may be set, and those of two hosts differ.
#pragma once

#include <chrono>

namespace trainctl {

// Since 1970.
inline double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace trainctl
