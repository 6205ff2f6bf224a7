// Parameters of which each rank of the data axis keeps a part: they are gathered for the ops that read them.
#pragma once

#include "core/program/program.h"
#include "parallel/strategies/strategy.h"

namespace trainctl {

// Adds the tensor for this rank's shard of the parameters of a bucket, by the bucket's number.
TensorId add_parameter_shard(Program& program, std::size_t bucket);

// Where the layout shares parameters (`shard: parameters`), gathers each bucket before the first op that reads it,
// in the forward pass and again in the backward pass; between the two no rank holds it. With overlap the next bucket is
// gathered while the ops run that read this one. Training and evaluation alike; other programs stay as they are.
Program gather_parameters(Program program, const MeshRank& rank, const Strategy& strategy);

}  // namespace trainctl
