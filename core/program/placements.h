// Placements of a program's tensors, followed op by op.
#pragma once

#include "core/graph/mesh.h"
#include "core/program/program.h"

namespace trainctl {

// Follows the program's tensors in the order of its schedule, along each axis of the mesh with more than one rank, and
// writes the placement of each tensor to Tensor::placements. Tensors that exist before the step are placed as their
// placements state (replicated where they state nothing); each replica has its own samples of the batch, each rank its
// own stop request. Along the pipeline every stage runs a program of its own: what it computes for itself counts as
// replicated, and sums that are stated to be partial are so where a collective reads them.
//
// Throws Error{internal}, which names op, config line and axis, where an op cannot take the placements of its inputs: a
// defect of the strategy that made the program. After the step, parameters, running statistics and optimizer states
// must be placed as before it, and tensors that the host reads must be replicated; only the sums of an evaluation may
// be partial along the data axis, since the host adds them up.
void check_placements(Program& program, const Mesh& mesh);

// Whether the strategy states that the ranks along the axis hold parts of the tensor.
bool states_split(const Tensor& tensor, MeshAxis axis);

// Whether this rank is the first along the tensor axis that holds these elements of a parameter or running statistic:
// of what is not split along the axis, all ranks hold a copy.
bool is_first_holder(const Tensor& tensor, const MeshRank& rank);
// The same of a parameter along the pipeline and tensor axes: several stages may hold it.
bool is_first_holder(const Program& program, const MeshRank& rank, const FlatEntry& entry);

// The config line of an op, else of a tensor that it reads or writes or that lies within one; unknown where none has a
// line. For errors.
SourceLocation location_of(const Program& program, const Op& op);

}  // namespace trainctl
