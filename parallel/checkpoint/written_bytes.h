// The bytes that a rank writes to a checkpoint, known from its program before anything is allocated.
#pragma once

#include <cstdint>

#include "core/graph/mesh.h"
#include "core/program/program.h"

namespace trainctl {

struct WrittenBytes {
  std::int64_t weights = 0;  // parameters and running statistics
  std::int64_t state = 0;    // of the optimizer; with moving averages, also the parameters that they follow
};

// What ShardPlan lets the rank write: of each tensor, or shard of one, that several ranks hold, the lowest of them
// writes it. `program`: a training program.
WrittenBytes written_bytes(const Program& program, const MeshRank& rank);

}  // namespace trainctl
