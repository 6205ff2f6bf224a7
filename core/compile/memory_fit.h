// Whether a run fits into a device's memory, before anything is allocated.
#pragma once

#include <cstdint>

#include "core/compile/memory_plan.h"

namespace trainctl {

// How a rank's share of a batch is cut into micro-batches.
struct BatchCut {
  std::int64_t batch_size = 1;  // of all ranks
  std::int64_t gradient_accumulation = 1;
  std::int64_t samples = 1;  // of a rank's share of a full batch
};

// Whether a plan is all that a run needs, or the least that it needs whatever kernels are chosen.
enum class Need { exact, least };

// More than the address space of any machine holds: what is refused where free memory is not known.
inline constexpr std::int64_t most_memory = std::int64_t{1} << 47;

// Throws Error{resource} where the plan needs more bytes than are free: how much of what, and which accumulation or
// batch would fit. Activations and workspace, the arena, shrink with the micro-batch, prefetched batches with the
// batch; what they would need is an estimate. `free` of 0: unknown, everything that any machine has fits.
void require_fit(const MemoryPlan& plan, std::int64_t free, const BatchCut& cut, Need need = Need::exact);

}  // namespace trainctl
