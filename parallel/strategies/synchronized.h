// Synchronized batch normalization: replicas normalize a micro-batch with the statistics of the samples of all
// replicas.
#pragma once

#include "core/graph/graph.h"
#include "parallel/strategies/strategy.h"

namespace trainctl {

// Replaces each BatchNorm that is `synchronized` by the ops that gather and merge the moments of all replicas and
// normalize with these (core/graph/ops/normalization/synchronized_batch_norm.h). Micro-batches then contain
// collectives, so that every replica must run the same number of micro-batches. Graphs on a mesh with one replica are
// not changed. Throws Error{config} at the layer's line if replicas take steps independently (`sync_every`) or in
// reproducible mode.
Graph synchronize_statistics(Graph graph, const MeshRank& rank, const Strategy& strategy);

}  // namespace trainctl
