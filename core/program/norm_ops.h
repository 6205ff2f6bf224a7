// The ops that add up the squares of a gradient of which ranks hold different parts, for its norm.
#pragma once

#include <cstdint>
#include <vector>

#include "core/program/program.h"

namespace trainctl {

// The axes along which ranks hold different parts of the gradient when it has been reduced.
std::vector<MeshAxis> axes_of_norm(const ParameterLayout& layout, const MeshRank& rank);

// The sum of the squares of the gradient that this rank updates, into `squares`, a scalar: partial along the axes. Each
// element is added by one rank: what several hold, by the first of them.
Op local_squares(Program& program, const MeshRank& rank, TensorId squares, const std::vector<MeshAxis>& axes);

// The same in reproducible mode, as one number for each chunk of a parameter (norm_chunk elements), which are reduced
// over the data axis where replicas share the update, and then added up in their order. No shard cuts a chunk, since
// shards and parameters begin at multiples of a chunk.
std::vector<Op> squares_by_chunk(Program& program, const MeshRank& rank, TensorId squares,
                                 const std::vector<MeshAxis>& axes);

}  // namespace trainctl
