// Gathers sharded parameters once in each step. Each rank of the data axis keeps a shard of them in float32.
#pragma once

#include "core/program/program.h"

namespace trainctl {

// Gathers all buckets before the first forward pass (Phase::prepare), into the region of gathered parameters, where all
// passes read them. Buckets of matrices are rounded to bfloat16 before they are gathered. `overlap`: a bucket is
// rounded while the bucket before it is gathered.
Program gather_once(Program program, int replicas, bool overlap);

}  // namespace trainctl
