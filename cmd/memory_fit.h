// Whether a run fits into a device's memory, before anything is allocated.
#pragma once

#include <cstdint>

#include "core/exec/memory_plan.h"

namespace trainctl {

// What a rank's batch is cut into.
struct BatchCut {
  std::int64_t batch_size = 1;  // of all ranks
  std::int64_t gradient_accumulation = 1;
  std::int64_t samples = 1;  // of a rank's share of a full batch
};

// Throws Error{resource} where the plan needs more bytes than are free: how much of what, and which accumulation or
// batch would fit. Activations and workspace, the arena, shrink with the micro-batch; what they would need is an
// estimate. `free` of 0: unknown, everything fits.
void require_fit(const MemoryPlan& plan, std::int64_t free, const BatchCut& cut);

}  // namespace trainctl
