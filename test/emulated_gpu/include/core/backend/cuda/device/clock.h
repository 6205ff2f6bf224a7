// The emulated GPU's clock; replaces the header of this name that CUDA uses.
#pragma once

#include <chrono>

namespace trainctl::cuda {

inline unsigned long long nanoseconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<unsigned long long>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

}  // namespace trainctl::cuda
