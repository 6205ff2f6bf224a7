// Whether the communications of all ranks fit together, found out before anything runs.
#pragma once

#include <vector>

#include "core/program/program.h"

namespace trainctl {

// Plays the communications of one step of all ranks of a mesh to the end; `programs`: what each rank runs in that step,
// the same pointer for ranks with the same program. A collective ends when all ranks of its group along the axis have
// come to it, a send when its receive has come. Communications along one axis run one after the other in the order of
// the program; an asynchronous one holds its rank up at its wait only, any other one at once. Where ranks meet, kind,
// elements and dtype are equal, and of a collective the name of the op and the root.
//
// Throws Error{internal}, which names ranks, ops and config line, where ranks do not match, where something is left
// over that nobody comes to, and where ranks wait for each other in a circle: a defect of the strategies that made the
// programs. Takes time by the communications of ranks that differ: of ranks that do the same along an axis one is
// played.
void check_communications(const Mesh& mesh, const std::vector<const Program*>& programs);

}  // namespace trainctl
