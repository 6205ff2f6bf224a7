// Sharding: the ranks of the data axis share the optimizer's states, gradients and parameters, which each of them holds
// whole under data parallelism (Rajbhandari et al., 2020: ZeRO; with parameters, PyTorch's FSDP).
#pragma once

#include "core/program/program.h"
#include "parallel/strategies/strategy.h"

namespace trainctl {

// Cuts the gradients into buckets of which each rank sums and updates one part (reduce-scatter in place of all-reduce).
// With `shard: optimizer` whole gradients stay in their region, and buckets are reduced in the last micro-batch, after
// their last gradient where reduction overlaps the backward pass. With `shard: gradients` a bucket lies in the slot
// from its first gradient to its reduction, which every micro-batch has. Unless parameters are shared too, each bucket
// of parameters is gathered after its update, which finish_training adds. Programs without an update, meshes with one
// replica and `shard: none` stay as they are.
Program share_update(Program program, const MeshRank& rank, const Strategy& strategy);

}  // namespace trainctl
