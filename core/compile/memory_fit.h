// Compares a run's memory plan with a device's memory, before anything is allocated.
#pragma once

#include <cstdint>

#include "core/compile/memory_plan.h"

namespace trainctl {

// The samples of a batch and of a rank's share, and the number of micro-batches that the share is cut into.
struct BatchCut {
  std::int64_t batch_size = 1;  // samples of all ranks
  std::int64_t gradient_accumulation = 1;
  std::int64_t samples = 1;  // of a rank's share of a full batch
};

// The memory that a rank may use, in bytes; 0: not known.
struct MemoryLimit {
  std::int64_t bytes = 0;
  bool stated = false;  // by cluster.memory; else it is what is free
};

// What a plan counts: all bytes of a run, or the least that it needs whatever kernels are chosen.
enum class Need { exact, least };

// In bytes: more than the memory of any machine. A plan above this is refused even where the limit is not known.
inline constexpr std::int64_t most_memory = std::int64_t{1} << 47;

// Throws Error{resource} where the plan needs more than the limit. The message lists the regions; the advice names a
// gradient_accumulation or a batch that would fit, an estimate: activations and workspace (the arena) shrink with the
// micro-batch, prefetched batches with the batch. Where the limit is not known, it is most_memory.
void require_fit(const MemoryPlan& plan, const MemoryLimit& limit, const BatchCut& cut, Need need = Need::exact);

}  // namespace trainctl
