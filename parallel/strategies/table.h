// The strategies whose one function only the table in strategy.cpp applies, in the order of the table. Each has a file,
// which is named above its function. A function does not change a graph or a program that does not use its strategy.
#pragma once

#include "core/graph/graph.h"
#include "core/program/program.h"
#include "parallel/strategies/strategy.h"

namespace trainctl {

// tensor/split_layers.cpp
// Tensor parallelism: the ranks along the tensor axis hold shards of the weights and compute shards of the layers'
// outputs.
//
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

// synchronized.cpp
// Synchronized batch normalization: replicas normalize a micro-batch with the statistics of the samples of all
// replicas.
//
// Replaces each BatchNorm that is `synchronized` by the ops that gather and merge the moments of all replicas and
// normalize with these (core/graph/ops/normalization/synchronized_batch_norm.h). Micro-batches then contain
// collectives, so that every replica must run the same number of micro-batches. Graphs on a mesh with one replica are
// not changed. Throws Error{config} at the layer's line if replicas take steps independently (`sync_every`) or in
// reproducible mode.
Graph synchronize_statistics(Graph graph, const MeshRank& rank, const Strategy& strategy);

// tensor/shared_parameters.cpp
// Lets ops that ranks run on their positions read parameters without aliases.
//
// With sequence parallelism, a rank's graph reads a whole parameter through an identity, whose gradient is the sum of
// the gradients of the ranks along the tensor axis. Once the program has its gradients, the identities are not needed:
// this function removes them, and the ops read the parameters themselves.
Program read_shared_parameters(Program program, const MeshRank& rank, const Strategy& strategy);

// recompute/recompute.cpp
// Recomputation: activations inside a block are recomputed for the backward pass instead of being kept (Chen et al.,
// 2016: Training Deep Nets with Sublinear Memory Cost).
//
// Inserts the forward ops of a block before the first op of each backward segment that reads their outputs. The results
// are bitwise equal: the same ops run on the same values, running statistics are updated by the first pass only, and
// dropout masks are a function of the step and the sample. With `blocks` all blocks are recomputed except the last
// ones, as long as these need no more memory than the largest block during its recomputation. With `auto` the blocks in
// strategy.recomputed are recomputed. Programs without a backward pass are not changed.
Program recompute_activations(Program program, const MeshRank& rank, const Strategy& strategy);

// data.cpp
// Data parallelism: every rank holds all parameters and computes a share of each batch; gradients are summed over the
// ranks.
//
// Sums the gradients over the data axis, in the order of the flat layout. With overlap, each bucket but the last is
// reduced after the op that completes its last gradient, in the last micro-batch's backward segment (a copy named
// "backward_last" if earlier micro-batches run the same segment). The update then reduces the last bucket and waits for
// all buckets. Without overlap, the update reduces one bucket with all gradients. Gradients that are communicated as
// bfloat16 (rounded.h) are reduced bucket by bucket: with overlap all in that backward segment, without overlap in the
// update. Programs without an update, meshes with one replica and sharded updates (share_update()) are not changed.
Program reduce_gradients(Program program, const MeshRank& rank, const Strategy& strategy);

// sharded.cpp
// Shards optimizer states, gradients and parameters, which every rank holds whole under data parallelism, over the data
// axis (Rajbhandari et al., 2020: ZeRO; with parameters, PyTorch's FSDP).
//
// Divides the gradients into buckets; each rank reduces and updates one shard of a bucket (reduce-scatter instead of
// all-reduce). With `shard: optimizer` whole gradients stay in their region, and buckets are reduced in the last
// micro-batch, after their last gradient if reduction overlaps the backward pass. With `shard: gradients` every
// micro-batch reduces all buckets, and a bucket is in the slot from its first gradient to its reduction. Unless
// parameters are sharded too, each bucket of parameters is gathered after its update, which finish_training adds.
// Programs without an update, meshes with one replica and `shard: none` are not changed.
Program share_update(Program program, const MeshRank& rank, const Strategy& strategy);

// reproducible/reproducible.cpp
// Reproducible mode: gradients and sums are added in an order that does not depend on the ranks.
//
// Adds the reductions of reproducible mode to a training program. Each micro-batch of a program with Program::shards is
// a logical shard, which is a leaf of the tree in reproducible/tree.h. Its backward pass writes gradients, statistics
// and sums to a slot. Then it adds this leaf to the sums of previous leaves that the leaf completes. It adds one group
// of gradients at a time, while the group is in the cache. A rank with several compute streams works in rounds instead:
// first each stream computes one leaf, then each stream adds some of the groups to the sums that the round completes.
// After the last leaf the replicas exchange their sums (reproducible/exchange.h). If the number of replicas is a power
// of two, they send as many bytes as a ring all-reduce does.
//
// In a training program without logical shards, only the alignment of the parameters is changed: programs for
// evaluation use the same layout. Programs outside of reproducible mode are not changed.
Program add_in_tree(Program program, const MeshRank& rank, const Strategy& strategy);

}  // namespace trainctl
