// Compares a run's memory plan with a device's memory, before anything is allocated.
#pragma once

#include <cstdint>

#include "core/compile/memory_plan.h"

namespace trainctl {

// The number of samples of a batch and of a rank's share, and the number of micro-batches that the share is cut into.
struct BatchCut {
  std::int64_t batch_size = 1;  // number of samples of all ranks
  std::int64_t gradient_accumulation = 1;
  std::int64_t samples = 1;  // number of samples of a rank's share of a full batch
};

// The memory that a rank may use, in bytes; 0: unknown.
struct MemoryLimit {
  std::int64_t bytes = 0;
  bool given = false;  // set by cluster.memory; otherwise it is the free memory
};

// The meaning of a plan's bytes: all bytes of a run, or the minimum for any choice of kernels.
enum class Need { exact, least };

// More bytes than any machine has. A plan above this is rejected even if the limit is unknown.
inline constexpr std::int64_t max_memory = std::int64_t{1} << 47;

// Throws Error{resource} if the plan needs more than the limit. The message lists the regions; the advice names a
// gradient_accumulation or a batch that would fit. It is an estimate: activations and workspace (the arena) shrink with
// the micro-batch, prefetched batches with the batch. If the limit is unknown, it is max_memory.
void require_fit(const MemoryPlan& plan, const MemoryLimit& limit, const BatchCut& cut, Need need = Need::exact);

}  // namespace trainctl
