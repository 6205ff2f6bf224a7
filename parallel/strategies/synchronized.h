// Synchronised batch normalisation: the replicas normalise a micro-batch by the statistics of all their samples.
#pragma once

#include "core/graph/graph.h"
#include "parallel/strategies/strategy.h"

namespace trainctl {

// Puts, in the place of each BatchNorm that is `synchronized`, the ops that gather and merge the moments of all
// replicas and normalise by these (core/graph/ops/normalization/synchronized_batch_norm.h). Collectives then lie within
// micro-batches, of which every replica runs as many. Graphs on a mesh with one replica stay as they are. Throws
// Error{config} at the layer's line where replicas take steps alone (`sync_every`).
Graph synchronize_statistics(Graph graph, const MeshRank& rank, const Strategy& strategy);

}  // namespace trainctl
