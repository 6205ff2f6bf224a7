// Computes and checks the placements of a program's tensors, op by op.
#pragma once

#include "core/graph/mesh.h"
#include "core/program/program.h"

namespace trainctl {

// Follows the program's tensors in the order of its schedule, along each axis of the mesh with more than one rank, and
// writes the placement of each tensor to Tensor::placements. Tensors that exist before the step have the placements
// that the strategy set (replicated if it set none); each replica has its own samples of the batch, each rank its own
// stop request. Along the pipeline, every stage runs a program of its own, and the tensors of this program count as
// replicated. A sum that the strategy declared partial counts as partial only in a collective that reads it.
//
// Throws Error{internal}, which names op, config line and axis, if an op does not accept the placements of its inputs,
// which is a defect of the strategy that made the program. After the step, parameters, running statistics and optimizer
// states must have the same placements as before it, and tensors that the host reads must be replicated; only the sums
// of an evaluation may be partial along the data axis, since the host adds them up.
void check_placements(Program& program, const Mesh& mesh);

// Whether the strategy declared that the tensor is split along the axis.
bool declared_split(const Tensor& tensor, MeshAxis axis);

// Whether this rank is the first rank along the tensor axis that holds these elements of a parameter or running
// statistic. If the tensor is not split along the axis, all ranks hold a copy.
bool is_first_holder(const Tensor& tensor, const MeshRank& rank);
// Whether this rank is the first rank along the pipeline and tensor axes that holds these elements of a parameter.
// Several stages may hold the parameter.
bool is_first_holder(const Program& program, const MeshRank& rank, const FlatEntry& entry);

// The config line of an op, for errors. If the op has no line, returns the line of a tensor that it reads or writes, or
// the line of a tensor in such a bucket; unknown if these tensors have no line.
SourceLocation location_of(const Program& program, const Op& op);

}  // namespace trainctl
