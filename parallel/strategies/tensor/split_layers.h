// Tensor parallelism: the ranks along the tensor axis hold shards of the weights and compute shards of the layers'
// outputs.
#pragma once

#include "core/graph/graph.h"
#include "parallel/strategies/strategy.h"

namespace trainctl {

// Converts the forward graph to the rank's shard of it, as in Megatron-LM (Shoeybi et al., 2019), by a walk over the
// ops and their placement rules. An op with a kernel begins to split if all ranks have its input: each rank computes
// some of the layer's units, filters or embedding columns. The next ops run on shards if they can along that dimension,
// such as channels or heads. A further op with a kernel reads the shards as they are, and the sum over the ranks is its
// whole output. If an op needs a whole tensor, it is gathered. So a pair of layers needs one sum in the forward pass,
// and one sum in the backward pass at its input. If several ops read a parameter, it is whole or split along the same
// dimension for all ops. Layers that are connected by split tensors are split together or not at all. They are split if
// they do at least `least_work` multiply-adds for each value that the ranks exchange, and if the number of ranks
// divides the units or filters. The choice is the same for every batch size. Throws Error{config} at the line of
// strategy.tensor if no layer of the network is split. Graphs on a mesh with one rank along the tensor axis are not
// changed.
Graph split_layers(Graph graph, const MeshRank& rank, const Strategy& strategy);

}  // namespace trainctl
