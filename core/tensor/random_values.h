// Random values in memory, for what is timed: zeros and leftovers would take another time than data does.
#pragma once

#include <cstdint>

#include "core/tensor/view.h"

namespace trainctl {

// Fills host memory with values that follow from `key` alone: numbers of uniform distribution in [-1, 1), and whole
// numbers from 0 to `below` - 1.
void fill_random(View data, std::uint64_t key, std::int64_t below);

}  // namespace trainctl
