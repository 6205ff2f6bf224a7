// Tensor parallelism: the ranks along the tensor axis hold parts of the weights and compute parts of the layers.
#pragma once

#include "core/graph/graph.h"
#include "parallel/strategies/strategy.h"

namespace trainctl {

// Turns the forward graph into the rank's part of it, as Megatron-LM does (Shoeybi et al., 2019), by a walk over the
// ops and their placement rules. An op with a kernel whose input all ranks have begins to split: each rank computes
// some of the layer's units, filters or columns of an embedding. Ops that can work on parts along that dimension, such
// as channels or heads, do. A further op with a kernel takes the parts as they are: the sum over the ranks is the whole
// output. If an op needs the whole tensor, it is gathered. So a pair of layers needs one sum forward, and one backward
// at its input. A parameter that several ops read is split along one dimension for all of them, or is whole.
//
// Layers that split tensors join are split together or not at all: they are where they do at least `least_work`
// multiply-adds for each value that the ranks exchange on their account, and where the ranks divide the units or
// filters. The choice is the same for every batch size. Throws Error{config} at the line of strategy.tensor where no
// layer of the network is split. Graphs on a mesh with one rank along the tensor axis stay as they are.
Graph split_layers(Graph graph, const MeshRank& rank, const Strategy& strategy);

}  // namespace trainctl
