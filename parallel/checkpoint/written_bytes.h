// Computes from a rank's program, before anything is allocated, the bytes that the rank writes to a checkpoint.
#pragma once

#include <cstdint>

#include "core/graph/mesh.h"
#include "core/program/program.h"

namespace trainctl {

struct WrittenBytes {
  std::int64_t weights = 0;  // parameters and running statistics
  std::int64_t state = 0;    // optimizer state; with moving averages, also the parameters that are averaged
};

// Returns the bytes that ShardPlan assigns to the rank: a tensor or shard that several ranks hold is written by the
// lowest of them. If replicas cut a parameter at different elements, ShardPlan may choose the shards of another replica
// than the first one, which only the shards of all ranks tell; the bytes of these ranks are an estimate then.
// `program`: a training program.
WrittenBytes written_bytes(const Program& program, const MeshRank& rank);

}  // namespace trainctl
