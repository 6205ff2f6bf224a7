// Gathers sharded parameters before the ops that read them. Each rank of the data axis keeps a shard.
#pragma once

#include <string>
#include <vector>

#include "core/program/program.h"
#include "parallel/strategies/strategy.h"

namespace trainctl {

// Adds the tensor for this rank's shard of the parameters of bucket number `bucket`.
TensorId add_parameter_shard(Program& program, std::size_t bucket);

// The ops that begin to gather a bucket, and those after which it is gathered.
struct GatherOps {
  std::vector<Op> begin, end;
};

// Returns the ops that gather the shards of a bucket into `whole`. `part` and `rounded`: bfloat16 tensors with as many
// elements as `shard` and `whole`, if the bucket is rounded before it is gathered; else no_tensor.
GatherOps gather_ops(const Program& program, TensorId shard, TensorId part, TensorId rounded, TensorId whole,
                     const std::string& name, int replicas, bool asynchronous);

// If the layout shards parameters, adds the ops that gather them. With `shard: parameters` each bucket is gathered
// before the first op that reads it, in the forward pass and again in the backward pass. Between the passes no rank
// holds the whole bucket. With overlap the next two buckets are gathered while the ops that read this one run.
// Otherwise they are gathered once for each step, before the first forward pass. With `parameter_dtype: bfloat16`,
// buckets of matrices are rounded before they are gathered. Applies to training and evaluation programs; other programs
// are not changed.
Program gather_parameters(Program program, const MeshRank& rank, const Strategy& strategy);

}  // namespace trainctl
