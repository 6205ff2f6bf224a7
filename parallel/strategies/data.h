// Data parallelism: every rank holds all parameters and a share of each batch; gradients are summed over the ranks.
#pragma once

#include <cstdint>
#include <vector>

#include "core/program/program.h"
#include "core/graph/mesh.h"
#include "parallel/strategies/options.h"

namespace trainctl {

// A range of the flat gradient region that is reduced as one. In elements.
struct Bucket {
  std::int64_t offset = 0;
  std::int64_t count = 0;

  bool operator==(const Bucket&) const = default;
};

// The whole gradient region cut at parameters' boundaries: each bucket closes with the parameter that fills it; the
// last one holds the reduced sums too. Sizes in bytes.
std::vector<Bucket> gradient_buckets(const FlatLayout& layout, std::int64_t first_bytes, std::int64_t bytes);

// Inserts the all-reduces. With overlap, each bucket is reduced behind the op that finishes its last gradient, in the
// last micro-batch's backward segment ("backward_last" where earlier micro-batches run the same one), all but the last
// bucket, which follows Agree in the update; without, one bucket holds everything. The update waits for all of them.
// States the placements of all tensors. Programs without an update (evaluation) and meshes with one replica get no
// collectives.
Program apply_data_parallel(Program program, const Mesh& mesh, const StrategyOptions& options, bool overlap);

}  // namespace trainctl
