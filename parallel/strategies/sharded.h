// Shards optimizer states, gradients and parameters, which every rank holds whole under data parallelism, over the data
// axis (Rajbhandari et al., 2020: ZeRO; with parameters, PyTorch's FSDP).
#pragma once

#include "core/program/program.h"
#include "parallel/strategies/strategy.h"

namespace trainctl {

// Divides the gradients into buckets; each rank reduces and updates one shard of a bucket (reduce-scatter instead of
// all-reduce). With `shard: optimizer` whole gradients stay in their region, and buckets are reduced in the last
// micro-batch, after their last gradient if reduction overlaps the backward pass. With `shard: gradients` every
// micro-batch reduces all buckets, and a bucket is in the slot from its first gradient to its reduction. Unless
// parameters are sharded too, each bucket of parameters is gathered after its update, which finish_training adds.
// Programs without an update, meshes with one replica and `shard: none` are not changed.
Program share_update(Program program, const MeshRank& rank, const Strategy& strategy);

}  // namespace trainctl
