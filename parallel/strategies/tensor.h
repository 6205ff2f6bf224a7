// Tensor parallelism: the ranks along the tensor axis hold parts of the weights and compute parts of the layers.
#pragma once

#include "core/graph/graph.h"
#include "parallel/strategies/strategy.h"

namespace trainctl {

// Cuts the forward graph into the rank's part, as Megatron-LM does (Shoeybi et al., 2019). A dense layer or ungrouped
// convolution whose input all ranks have is split by columns: each rank computes some of its units or filters. What
// works channel by channel then works on these. The next dense layer or convolution is split by rows: each rank takes
// the channels that it has, and the sum over the ranks is the whole output. Where an op needs all channels they are
// gathered. So a pair of layers needs one sum forward, and one backward at its input. An embedding is split by columns,
// too: each rank holds a part of every token's vector.
//
// Layers that split tensors join are split together or not at all: they are where they do at least `least_work`
// multiply-adds for each value that the ranks exchange on their account, and where the ranks divide the units or
// filters. The choice is the same for every batch size. Throws Error{config} at the line of strategy.tensor where no
// layer of the network is split. Graphs on a mesh with one rank along the tensor axis stay as they are.
Graph split_layers(Graph graph, const MeshRank& rank, const Strategy& strategy);

}  // namespace trainctl
