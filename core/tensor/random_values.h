// Fills memory with random values for benchmarks: zeros or leftover values could make kernels faster or slower than
// real data.
#pragma once

#include <cstdint>

#include "core/tensor/view.h"

namespace trainctl {

// Fills host memory with values that depend only on `key`: floating-point numbers between -1 and 1 (uniform in [-1, 1),
// except that float16 has absolute values of at least 1/2), or integers from 0 to `below` - 1.
void fill_random(View data, std::uint64_t key, std::int64_t below);

}  // namespace trainctl
