// Reduces values of several ranks element by element, in the given order.
#pragma once

#include <cstddef>
#include <span>

#include "core/backend/communicator.h"

namespace trainctl {

// Reduces `count` elements of all sources, first to last, and writes the result to every destination. Destinations may
// be sources; they must not overlap otherwise. bfloat16 and float16 are summed in float32 and rounded once. The bits do
// not depend on the instruction set, which is chosen at run time.
void reduce(std::span<std::byte* const> sources, std::span<std::byte* const> destinations, DType dtype,
            std::int64_t count, Reduction reduction);

}  // namespace trainctl
