// Placements of a program's tensors, followed op by op.
#pragma once

#include "core/graph/mesh.h"
#include "core/program/program.h"

namespace trainctl {

// Follows the program's tensors in the order of its schedule, on each axis of the mesh with more than one rank, and
// states in Tensor::placements how each lies where it is made. What is there before a step lies as its placements say
// (replicated where they say nothing); of the batch each replica has its samples, of the stop request each rank its
// own.
//
// Throws Error{internal}, which names op, config line and axis, where placements cannot meet: a defect of the strategy
// that made the program. After the step, parameters, running statistics and optimizer states lie as they lay before it,
// and what the host reads is replicated; only the sums of an evaluation may be partial on the data axis, since the host
// adds them up.
void check_placements(Program& program, const Mesh& mesh);

}  // namespace trainctl
