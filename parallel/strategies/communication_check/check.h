// Checks before anything runs that the communications of all ranks match.
#pragma once

#include <vector>

#include "core/program/program.h"

namespace trainctl {

// Simulates the communications of one step of all ranks of a mesh. `programs`: the program that each rank runs in this
// step; ranks with the same program have the same pointer. A collective ends when all ranks of its group along the axis
// have reached it, a send when its receive is reached. Communications along one axis run one after the other in the
// order of the program; a rank waits for an asynchronous communication at its wait, and for any other immediately.
// Communications that meet must have the same kind, number of elements and dtype; collectives also the same op name and
// root. Throws Error{internal}, which names ranks, ops and the line of the config, if communications do not match, if a
// communication is left over that no other rank reaches, or if ranks wait for each other in a circle. Such an error is
// a defect of the strategies that built the programs. If all ranks along an axis do the same, only one of them is
// simulated.
void check_communications(const Mesh& mesh, const std::vector<const Program*>& programs);

}  // namespace trainctl
