// Shares a loop among the compute threads of the calling thread.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>

namespace trainctl::cpu {

// Calls body(begin, end) on ranges of [0, count), one range per thread. The lengths of all ranges but the last are
// multiples of `grain`. With at most one grain of work the calling thread runs alone. The ranges depend on count, grain
// and the number of threads.
template <class Body>
void parallel_ranges(std::int64_t count, std::int64_t grain, const Body& body) {
  const std::int64_t grains = (count + grain - 1) / grain;
  const auto threads = static_cast<int>(std::min<std::int64_t>(omp_get_max_threads(), grains));
  if (threads <= 1) {
    if (count > 0) body(std::int64_t{0}, count);
    return;
  }
#pragma omp parallel num_threads(threads)
  {
    const std::int64_t thread = omp_get_thread_num();
    const std::int64_t begin = grains * thread / omp_get_num_threads() * grain;
    const std::int64_t end = std::min(count, grains * (thread + 1) / omp_get_num_threads() * grain);
    if (begin < end) body(begin, end);
  }
}

// The grain of element-wise loops: the number of elements that a thread processes in about the time in which another
// thread wakes up.
inline constexpr std::int64_t element_grain = 16384;

}  // namespace trainctl::cpu
