// The ops that add up the squares of a gradient for its norm, if ranks hold different shards of the gradient.
#pragma once

#include <cstdint>
#include <vector>

#include "core/program/program.h"

namespace trainctl {

// The axes along which ranks hold different shards of the gradient after its reduction.
std::vector<MeshAxis> axes_of_norm(const ParameterLayout& layout, const MeshRank& rank);

// Writes the sum of the squares of the gradient that this rank updates to the scalar `squares`, which is partial along
// the axes. Each element is added by one rank only: the first rank that holds it.
Op local_squares(Program& program, const MeshRank& rank, TensorId squares, const std::vector<MeshAxis>& axes);

// Writes the sum of squares in reproducible mode: one number for each chunk of a parameter (norm_chunk elements). The
// numbers are reduced over the data axis if replicas share the update, and then added up in a fixed order. No shard
// cuts a chunk, since shards and parameters begin at multiples of a chunk.
std::vector<Op> squares_by_chunk(Program& program, const MeshRank& rank, TensorId squares,
                                 const std::vector<MeshAxis>& axes);

}  // namespace trainctl
