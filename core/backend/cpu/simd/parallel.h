// Sharing a loop among the compute threads of the calling thread.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>

namespace trainctl::cpu {

// Calls body(begin, end) on parts of [0, count), one part per thread. All parts but the last are multiples of `grain`
// long. With at most one grain of work the calling thread runs alone. The parts depend on count, grain and the number
// of threads.
template <class Body>
void parallel_ranges(std::int64_t count, std::int64_t grain, const Body& body) {
  const std::int64_t grains = (count + grain - 1) / grain;
  const auto parts = static_cast<int>(std::min<std::int64_t>(omp_get_max_threads(), grains));
  if (parts <= 1) {
    if (count > 0) body(std::int64_t{0}, count);
    return;
  }
#pragma omp parallel num_threads(parts)
  {
    const std::int64_t part = omp_get_thread_num();
    const std::int64_t begin = grains * part / omp_get_num_threads() * grain;
    const std::int64_t end = std::min(count, grains * (part + 1) / omp_get_num_threads() * grain);
    if (begin < end) body(begin, end);
  }
}

// The grain of element-wise loops: the elements that a thread processes in about the time that waking another thread
// takes.
inline constexpr std::int64_t element_grain = 16384;

}  // namespace trainctl::cpu
